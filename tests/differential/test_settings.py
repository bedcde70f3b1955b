"""Settings that change how values are read and written act on protected columns, too."""

import re

import pytest
from results import plain, run

DDL = """
CREATE TABLE t (i int PRIMARY KEY, d enc_date, ts enc_timestamp, tz enc_timestamptz,
                iv enc_interval, f enc_float8, b enc_bytea, c enc_bpchar(6), n enc_numeric(8, 3))
"""
ROWS = [
    "1, '2024-02-03', '2024-02-03 04:05:06.7', '2024-07-03 04:05:06+02', '1 year 2 days 03:04:05',"
    " 0.1, '\\xdeadbeef', 'ab', 12.3456",
    "2, '0044-03-15 BC', '1999-12-31 23:59:59', '1999-12-31 23:59:59-11', '-1 mon', 1e300,"
    " 'abc', 'abcdef', -0.0005",
]
SETTINGS = {
    "DateStyle": ["ISO, MDY", "SQL, DMY", "German, DMY", "Postgres, MDY"],
    "IntervalStyle": ["postgres", "sql_standard", "postgres_verbose", "iso_8601"],
    "TimeZone": ["UTC", "America/New_York", "Asia/Kolkata", "+03:30"],
    "extra_float_digits": ["0", "-5", "3"],
}


@pytest.fixture
def both(app, second, schema):
    app.execute(DDL)
    second.execute(plain(DDL.replace("TABLE t", "TABLE p")))
    for row in ROWS:
        app.execute(f"INSERT INTO t VALUES ({row})")
        second.execute(f"INSERT INTO p VALUES ({row})")
    return app, second


@pytest.mark.parametrize("name", SETTINGS)
def test_setting(both, name):
    app, second = both
    for value in SETTINGS[name]:
        for connection in both:
            connection.execute(f"SET {name} = '{value}'")
        for query in (
            "SELECT * FROM t ORDER BY i",
            "SELECT i, d::text, ts::text, tz::text, iv::text, f::text, tz::date FROM t ORDER BY i",
            "SELECT i FROM t WHERE d = '02-03-2024' ORDER BY i",
            "SELECT i, extract(hour FROM tz), date_trunc('day', tz), tz - iv FROM t ORDER BY i",
        ):
            expected = run(second, re.sub(r"FROM t\b", "FROM p", query))
            assert run(app, query).same(expected), (name, value, query)

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
    "3, 'infinity', '-infinity', 'epoch', '-1 day 3 hours', 0.30000000000000004,"
    " 'a\\001\\\\ ü', 'x', 1",
    "2, '0044-03-15 BC', '1999-12-31 23:59:59', '1999-12-31 23:59:59-11', '-1 mon', 1e300,"
    " 'abc', 'abcdef', -0.0005",
]
SETTINGS = {
    "DateStyle": ["ISO, MDY", "SQL, DMY", "German, DMY", "Postgres, MDY"],
    "IntervalStyle": ["postgres", "sql_standard", "postgres_verbose", "iso_8601"],
    "TimeZone": ["UTC", "America/New_York", "Asia/Kolkata", "+03:30"],
    "extra_float_digits": ["0", "-5", "3"],
    "bytea_output": ["hex", "escape"],
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


def test_forms_of_the_client(both):
    """What the client writes of opened values: drivers read both forms of bytea."""
    app, second = both
    for name, value in (("bytea_output", "escape"), ("extra_float_digits", "0")):
        shown = []
        for connection, table in ((app, "t"), (second, "p")):
            connection.execute(f"SET {name} = '{value}'")
            result = connection.execute(f"SELECT f, b FROM {table} ORDER BY i").pgresult
            shown.append([result.get_value(row, column) for row in range(3) for column in range(2)])
        assert shown[0] == shown[1], name


def test_now_is_when_the_transaction_began(app, schema):
    app.execute("CREATE TABLE n (ts enc_timestamptz, d enc_date)")
    with app.transaction():
        app.execute("INSERT INTO n VALUES ('now', 'today')")
        app.execute("SELECT pg_sleep(0.01)")
        app.execute("INSERT INTO n VALUES ('now', 'today')")
        assert app.execute("SELECT count(*) FROM n WHERE ts = 'now'").fetchone()[0] == 2
        assert app.execute("SELECT count(*) FROM n WHERE ts = now()").fetchone()[0] == 2
    app.execute("SELECT pg_sleep(0.001)")
    assert app.execute("SELECT count(*) FROM n WHERE ts = 'now'").fetchone()[0] == 0

"""Functions that return sets, on plain and on protected columns.

Mechanism: the proxy calls the extension's function for sets of protected values, which asks the
keeper where a set ends. Right: the same rows with the same names, in the list of a query and in
FROM, and PostgreSQL's SQLSTATEs. Bug: a row more or less at the ends of a type or of a text,
another name of the column, a constant in the clear (tests/security/canaries).
"""

import psycopg
import pytest
from results import run

COLUMNS = """id int, a {0}int4, b {0}int8, d {0}date, ts {0}timestamp, tz {0}timestamptz,
    s {0}text, v {0}varchar, jb {0}jsonb, js {0}json"""
ROWS = [
    (0, 3, 5, "2020-02-27", "2020-02-28 12:00", "2020-03-28 12:00", "a,b,,c", ",", "[1, null, {}]"),
    (1, -2, -1, "1999-12-31", "1999-12-31", "1999-12-31", ",x", "x", '["a", [2]]'),
    (2, 2147483646, 9223372036854775806, "2020-02-29", "2020-02-29", "2020-03-29", "", ",", "[]"),
    (3, None, None, None, None, None, None, None, None),
    (4, 0, 0, "2020-01-01", "2020-01-01", "2020-01-01", "aXXbXX", "XX", '{"k": [1]}'),
    (5, 0, 0, "2020-01-01", "2020-01-01", "2020-01-01", "äöü", None, "7"),
]


@pytest.fixture
def sides(app):
    app.execute("SET timezone = 'Europe/Berlin'")
    for table, prefix in (("p", ""), ("e", "enc_")):
        app.execute(f"CREATE TABLE {table} ({COLUMNS.format(prefix)})")
    with app.cursor() as cursor:
        rows = [(*row, row[-1]) for row in ROWS]
        cursor.executemany(f"INSERT INTO p VALUES ({', '.join(['%s'] * 10)})", rows)
    app.execute("INSERT INTO e SELECT * FROM p")
    return app


def names(connection, query):
    with connection.cursor() as cursor:
        cursor.execute(query)
        return [column.name for column in cursor.description]


def both(connection, query, *parameters):
    plain, protected = (run(connection, query.format(t), *parameters) for t in "pe")
    assert (protected.sqlstate, protected.rows) == (plain.sqlstate, plain.rows), protected.message
    if plain.sqlstate is None and not parameters:
        assert names(connection, query.format("e")) == names(connection, query.format("p")), query
    return plain


SERIES = [
    "SELECT id, generate_series(a, a + 3) FROM {} WHERE id <> 2",
    "SELECT id, generate_series(1, a) FROM {} WHERE id <> 2",
    "SELECT id, generate_series(a, 2147483647) FROM {} WHERE id = 2",
    "SELECT id, generate_series(a, 2147483647, 5) FROM {} WHERE id = 2",
    "SELECT id, generate_series(b, 9223372036854775807, 2) FROM {} WHERE id = 2",
    "SELECT id, generate_series(b, a, -1) FROM {} WHERE id < 2",
    "SELECT id, generate_series(a, id) FROM {} WHERE id <> 2",
    "SELECT generate_series(b, '7') FROM {} WHERE id = 0",
    "SELECT id, x FROM {}, generate_series(a, 4) x WHERE id <> 2 ORDER BY 1, 2",
    "SELECT id, x FROM {}, generate_series(a, 4) AS g (x) WHERE id <> 2 ORDER BY 1, 2",
    "SELECT id, generate_series FROM {}, generate_series(a, b, 2) WHERE id <> 2 ORDER BY 1, 2",
    "SELECT sum(x) FROM {}, LATERAL generate_series(0, a) x WHERE id <> 2",
    "SELECT generate_series(d, d + 2, interval '1 day') FROM {} WHERE id < 5",
    "SELECT generate_series(ts, '2020-03-02', '18:00') FROM {} WHERE id <> 1",
    "SELECT generate_series(tz, '2020-03-30', interval '6 hours') FROM {} WHERE id IN (0, 2)",
    "SELECT generate_series(ts, ts - interval '2 mon', '-1 mon') FROM {}",
    "INSERT INTO {0} (a) SELECT generate_series(a, 5) FROM {0} WHERE id = 0 RETURNING a",
]
TEXTS = [
    "SELECT id, string_to_table(s, ',') FROM {}",
    "SELECT id, string_to_table(s, v) FROM {}",
    "SELECT id, string_to_table(s, 'XX') FROM {}",
    "SELECT id, string_to_table(s, '') FROM {}",
    "SELECT id, string_to_table(s, NULL) FROM {}",
    "SELECT id, string_to_table(s, ',', 'b') FROM {}",
    "SELECT id, string_to_table(s, ',', '') FROM {}",
    "SELECT id, string_to_table('1,2,' || s, ',') FROM {}",
    "SELECT string_to_table, id FROM {}, string_to_table(s, ',') ORDER BY id, 1",
    "SELECT x, count(*) FROM {}, string_to_table(s, ',') x GROUP BY x ORDER BY x",
]
DOCUMENTS = [
    "SELECT id, jsonb_array_elements(jb) FROM {} WHERE id < 4",
    "SELECT id, jsonb_array_elements_text(jb) FROM {} WHERE id < 4",
    "SELECT id, json_array_elements_text(js) FROM {} WHERE id < 4",
    "SELECT id, json_array_elements(js)::text FROM {} WHERE id < 4",
    "SELECT id, jsonb_array_elements(jb -> 'k') FROM {} WHERE id = 4",
    "SELECT value FROM {}, jsonb_array_elements(jb) WHERE id < 4 ORDER BY id, value",
    "SELECT j.value FROM {}, jsonb_array_elements(jb) j WHERE id < 4 ORDER BY id, value",
    "SELECT j ->> 0 FROM {}, jsonb_array_elements(jb) j WHERE id < 4 ORDER BY id, j",
    "SELECT x FROM {}, jsonb_array_elements_text(jb) AS j (x) WHERE id < 4 ORDER BY id, x",
]


@pytest.mark.parametrize("query", [*SERIES, *TEXTS, *DOCUMENTS])
def test_rows(sides, query):
    assert both(sides, query).sqlstate is None


FAILS = {
    "SELECT generate_series(a, 5, 0) FROM {} WHERE id = 0": "22023",
    "SELECT generate_series(ts, ts, interval '0') FROM {} WHERE id = 0": "22023",
    "SELECT jsonb_array_elements(jb) FROM {} WHERE id = 4": "22023",
    "SELECT json_array_elements(js) FROM {} WHERE id = 5": "22023",
    "SELECT generate_series(ts, '290000-01-01', interval '4000 years') FROM {} WHERE id = 4": None,
}


@pytest.mark.parametrize("query", FAILS)
def test_errors(sides, query):
    outcome = both(sides, query)
    assert FAILS[query] in (None, outcome.sqlstate)


def test_parameters(sides):
    both(sides, "SELECT generate_series(a, %s) FROM {} WHERE id = 0", [6])
    both(sides, "SELECT generate_series(ts, %s, %s) FROM {} WHERE id = 0", ["2020-03-01", "1 day"])
    both(sides, "SELECT string_to_table(s, %s) FROM {}", [","])


REFUSED = {
    "SELECT generate_series(a, 2.5) FROM e": "integers",
    "SELECT * FROM e, ROWS FROM (generate_series(a, 2))": "alias",
    "SELECT * FROM e, generate_series(a, 2) WITH ORDINALITY": "alias",
}


@pytest.mark.parametrize("query", REFUSED)
def test_refused(sides, query):
    with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
        sides.execute(query)
    assert REFUSED[query] in caught.value.diag.message_hint

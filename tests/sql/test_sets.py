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
    s {0}text, v {0}varchar, jb {0}jsonb, js {0}json, n {0}numeric, o {0}jsonb, oj {0}json"""
OBJECT = '{"b": 1.50, "aa": [1, {"x": "y"}], "": null, "b": "twice", "é": " "}'
ROWS = [
    (0, 3, 5, "2020-02-27", "2020-02-28 12:00", "2020-03-28 12:00", "a,b,,c", ",",
     "[1, null, {}]", "1.50", OBJECT),
    (1, -2, -1, "1999-12-31", "1999-12-31", "1999-12-31", ",x", "x", '["a", [2]]', "-2", "{}"),
    (2, 2147483646, 9223372036854775806, "2020-02-29", "2020-02-29", "2020-03-29", "", ",", "[]",
     "99999999999999999998.5", '{"k": {}}'),
    (3, *[None] * 10),
    (4, 0, 0, "2020-01-01", "2020-01-01", "2020-01-01", "aXXbXX", "XX", '{"k": [1]}', "NaN", "[1]"),
    (5, 0, 0, "2020-01-01", "2020-01-01", "2020-01-01", "äöü", None, "7", "Infinity", "7"),
]  # fmt: skip


@pytest.fixture
def sides(app):
    app.execute("SET timezone = 'Europe/Berlin'")
    for table, prefix in (("p", ""), ("e", "enc_")):
        app.execute(f"CREATE TABLE {table} ({COLUMNS.format(prefix)})")
    with app.cursor() as cursor:
        rows = [(*row[:9], row[8], *row[9:], row[-1]) for row in ROWS]
        cursor.executemany(f"INSERT INTO p VALUES ({', '.join(['%s'] * 13)})", rows)
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
    "SELECT id, generate_series(n, n + 2, 0.75) FROM {} WHERE id < 4",
    "SELECT id, generate_series(n, 5) FROM {} WHERE id < 2",
    "SELECT id, generate_series(n, a, -1) FROM {} WHERE id = 1",
    "SELECT id, generate_series(2.5, n, '-0.5') FROM {} WHERE id = 1",
    "SELECT generate_series(a, 2.5) FROM {} WHERE id < 2",
    "SELECT generate_series(1, b, 1.5) FROM {} WHERE id < 2",
    "SELECT x FROM {}, generate_series(1, n) x WHERE id = 0",
    "SELECT * FROM {}, generate_series(a, 5) WITH ORDINALITY WHERE id = 0",
    "SELECT id, x, k FROM {}, generate_series(a, 5) WITH ORDINALITY AS g (x, k) WHERE id = 0",
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
    "SELECT id, regexp_split_to_table(s, ',') FROM {}",
    "SELECT id, regexp_split_to_table(s, ',*') FROM {}",
    "SELECT id, regexp_split_to_table(s, '') FROM {}",
    "SELECT id, regexp_split_to_table(s, v) FROM {}",
    "SELECT id, regexp_split_to_table(s, 'xx', 'i') FROM {}",
    "SELECT id, regexp_split_to_table(s, NULL) FROM {}",
    "SELECT id, regexp_split_to_table('1 2', s) FROM {}",
    "SELECT * FROM {}, regexp_split_to_table(s, ',') WITH ORDINALITY ORDER BY id, ordinality",
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
OBJECTS = [
    "SELECT id, key, value FROM {}, jsonb_each(o) WHERE id < 4 ORDER BY id, key",
    "SELECT id, key, value::text FROM {}, json_each(oj) WHERE id < 4",
    "SELECT id, x.key, x.value FROM {}, jsonb_each_text(o) x WHERE id < 4",
    "SELECT id, kk, vv FROM {}, json_each_text(oj) AS x (kk, vv) WHERE id < 4",
    "SELECT id, jsonb_object_keys(o) FROM {} WHERE id < 4",
    "SELECT id, json_object_keys(oj) FROM {} WHERE id < 4",
    "SELECT jsonb_object_keys FROM {}, jsonb_object_keys(o) WHERE id < 4",
    "SELECT id, k FROM {}, json_object_keys(oj) k WHERE id < 4",
    "SELECT * FROM {}, jsonb_each(o) WITH ORDINALITY WHERE id = 0 ORDER BY ordinality",
    "SELECT * FROM {}, jsonb_object_keys(o) WITH ORDINALITY AS k (x, n) WHERE id = 0",
    "SELECT id, (jsonb_each(o)).key FROM {} WHERE id < 4",
    "SELECT id, (jsonb_each_text(o)).* FROM {} WHERE id < 4",
    "SELECT value ->> 0 FROM {}, jsonb_each(o) WHERE id = 0 AND key = 'aa'",
    "SELECT key, count(*) FROM {}, jsonb_each(o || '{{}}') WHERE id < 3 GROUP BY 1 ORDER BY 1",
    "SELECT id, x.key FROM {} LEFT JOIN LATERAL jsonb_each(o) x ON value = '1' WHERE id < 4",
    "SELECT jsonb_object_agg(key, value) FROM {}, jsonb_each(o) WHERE id = 0 AND key > 'a'",
    "SELECT id FROM {} WHERE EXISTS (SELECT FROM jsonb_each_text(o) WHERE key = 'k') AND id < 4",
]


@pytest.mark.parametrize("query", [*SERIES, *TEXTS, *DOCUMENTS, *OBJECTS])
def test_rows(sides, query):
    assert both(sides, query).sqlstate is None


FAILS = {
    "SELECT generate_series(a, 5, 0) FROM {} WHERE id = 0": "22023",
    "SELECT generate_series(ts, ts, interval '0') FROM {} WHERE id = 0": "22023",
    "SELECT jsonb_array_elements(jb) FROM {} WHERE id = 4": "22023",
    "SELECT json_array_elements(js) FROM {} WHERE id = 5": "22023",
    "SELECT jsonb_object_keys(o) FROM {} WHERE id = 4": "22023",
    "SELECT key FROM {}, jsonb_each(o) WHERE id = 5": "22023",
    "SELECT key FROM {}, json_each_text(oj) WHERE id = 4": "22023",
    "SELECT generate_series(n, 5, 0) FROM {} WHERE id = 0": "22023",
    "SELECT generate_series(n, 5) FROM {} WHERE id = 4": "22023",
    "SELECT generate_series(1, n) FROM {} WHERE id = 5": "22023",
    "SELECT generate_series(1, n::float8) FROM {} WHERE id = 0": "42883",
    "SELECT regexp_split_to_table(s, '(') FROM {} WHERE id = 0": "2201B",
    "SELECT regexp_split_to_table(s, 'a', 'g') FROM {} WHERE id = 0": "22023",
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
    both(sides, "SELECT regexp_split_to_table(s, %s) FROM {}", ["[,X]"])
    both(sides, "SELECT generate_series(n, %s, %s) FROM {} WHERE id < 2", [4, 0.5])
    both(sides, "SELECT key FROM {}, jsonb_each_text(o) WHERE value = %s AND id < 4", ["twice"])


REFUSED = {
    "SELECT * FROM e, ROWS FROM (generate_series(a, 2))": "alias",
    "SELECT jsonb_each(o) FROM e WHERE id = 0": "fields",
}


@pytest.mark.parametrize("query", REFUSED)
def test_refused(sides, query):
    with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
        sides.execute(query)
    assert REFUSED[query] in caught.value.diag.message_hint

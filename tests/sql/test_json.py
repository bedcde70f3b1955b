"""`enc_json` and `enc_jsonb`: each expression gives what it gives on plain columns.

Mechanism: a table with plain columns and one with protected ones, all kinds of documents; results,
SQLSTATEs and messages are compared. Bug: a number loses its digits, keys come in another order, a
NULL is taken for a null, a key goes out in the clear.
"""

import psycopg
import pytest
from psycopg.types.json import Json, Jsonb
from results import run

DOCUMENTS = [
    '{"a": 1, "b": {"c": [10, 20.50, {"d": null}]}, "aa": "x", "a": 2}',
    ' {"bb":1,"a" : "é\\n\\u00e9\\ud83d\\ude00\\"" , "":true}',
    "[1, 1.0, 1e3, -0, 12345678901234567890.123456789000]",
    '["a", "b", "a", null, false, [], {}]',
    '[[1, 2], [3, [4]], {"a": [5]}]',
    "[]",
    "{}",
    '"a"',
    "null",
    "17.50",
    "true",
    "1.0",
    "1",
    None,
]
SETUP = """CREATE TABLE t (id int, j {p}json, b {p}jsonb, k {p}text, i {p}int4, n {p}numeric,
    d {p}date, z {p}timestamptz, o {p}bool, y {p}bytea, iv {p}interval, f {p}float8)"""

EXPRESSIONS = """
j
b
j -> 'a'
b -> 'a'
j ->> 'a'
b ->> 'a'
b -> 'b' -> 'c' -> 1
b -> 'b' -> 'c' ->> 2
j -> 'b' -> 'c' ->> 1
b -> 0
b ->> -1
j -> -1
j ->> 3
b -> 99
b -> k
b ->> i
b #> '{b,c,1}'
b #>> '{b,c,1}'
j #> '{b,c,2}'
j #>> '{b,c,2,d}'
b #> ARRAY['b', 'c']
b #>> '{0}'
b #>> '{}'
b #> '{-1,0}'
b #> ARRAY['a', NULL]
b #- '{b,c,1}'
b #- '{0}'
b #- '{-1,0}'
b #- '{}'
b #- ARRAY['aa', k]
b #- ARRAY[NULL, 'b']
jsonb_delete_path(b, '{a}')
jsonb_set(b, '{a}', '"new"')
jsonb_set(b, '{b,c,0}', b)
jsonb_set(b, '{b,none,0}', '1')
jsonb_set(b, ARRAY['b', k], '[1, {"x": 2.50}]', true)
jsonb_set(b, '{new}', '1', false)
jsonb_set(b, '{1}', 'null')
jsonb_set(b, '{-99}', '1')
jsonb_set(b, '{ 99}', to_jsonb(i))
jsonb_set(b, '{99}', '1', id < 7)
jsonb_set(b, '{0,0}', '1')
jsonb_set(b, '{}', '1')
jsonb_set(b, ARRAY[NULL, 'a'], '1')
jsonb_set(b, NULL, '1')
jsonb_set(b, '{a}', to_jsonb(k))
jsonb_set(jsonb_set(b, '{x}', '{}'), '{x,y}', '1')
jsonb_insert(b, '{1}', '"new"')
jsonb_insert(b, '{1}', '"new"', true)
jsonb_insert(b, '{-1}', '"new"', id > 3)
jsonb_insert(b, '{b,c,-9}', '1')
jsonb_insert(b, '{a}', '1')
jsonb_insert(b, '{b,more}', b)
jsonb_extract_path(b, 'b', 'c', '1')
jsonb_extract_path_text(b, 'b', k)
json_extract_path(j, 'b', 'c')
json_extract_path_text(j, 'a')
b @> '{"a": 2}'
b @> '[1]'
b @> '"a"'
b @> '{"b": {"c": [{}]}}'
b <@ '{"a": 2, "b": 1}'
'["a"]' <@ b
b ? 'a'
b ? k
b ?| '{zz,bb}'
b ?| ARRAY['a', 'q']
b ?& ARRAY['a', 'b']
b ?& '{}'
b = '{}'
b = '1.00'
b < '[]'
b >= '{"a": 1}'
b <> 'null'
b IN ('1', '"a"', '{}')
b = ANY (ARRAY['1', '[]']::jsonb[])
b || '{"a": null, "new": [1]}'
b || '[1, 2]'
b || '7'
'[0]' || b
b || b
b - 'a'
b || '{"n": 1}'::jsonb - 'n'
b || '["n", 1]'::jsonb - 0
b - i
b - 0
b - ARRAY['a', 'b']
b - '{a,b}'::text[]
jsonb_typeof(b)
json_typeof(j)
jsonb_array_length(b)
json_array_length(j)
jsonb_strip_nulls(b)
jsonb_pretty(b)
b::text
j::text
b::json
j::jsonb
j::varchar
k::jsonb
b::numeric
b::int
b::bool
b::float8
b IS NULL
coalesce(b, '{"none": 1}')
nullif(b, '{}')
CASE WHEN b ? 'a' THEN b -> 'a' ELSE b END
greatest(b, '[]')
to_json(k)
to_jsonb(n)
to_jsonb(b)
to_json(z)
to_jsonb(d)
jsonb_build_object('k', k, 'n', n, 'd', d, 'z', z, 'o', o, 'y', y, 'iv', iv, 'f', f, 'b', b, 'j', j)
json_build_object('k', k, 'i', i, 'n', n, 'doc', b, 'raw', j)
json_build_array(k, i, n, 1, 'x', NULL, o)
jsonb_build_array(b, j, k, 1.50)
jsonb_build_object(k, 1)
json_build_object(k, i, 'x')
jsonb_build_object('id', id, 'k', k)
length(b ->> 'a')
(b ->> 'a') = '2'
(b -> 'b') @> '{"c": [10]}'
""".strip().splitlines()

CONDITIONS = """
SELECT id FROM t ORDER BY b, id
SELECT id FROM t ORDER BY b DESC NULLS LAST, id
SELECT b, count(*) FROM t GROUP BY b ORDER BY b
SELECT DISTINCT b FROM t ORDER BY b
SELECT DISTINCT b ->> 'a' AS x FROM t ORDER BY x
SELECT x.id, y.id FROM t x JOIN t y ON x.b = y.b ORDER BY 1, 2
SELECT x.id, y.id FROM t x JOIN t y ON x.b @> y.b ORDER BY 1, 2
SELECT id FROM t WHERE b @> '{"a": 2}' AND b ->> 'aa' = 'x'
SELECT count(*) FROM t WHERE b -> 'a' IS NOT NULL
SELECT id FROM t WHERE b = (SELECT b FROM t WHERE id = 12) ORDER BY id
SELECT b FROM t WHERE id < 3 UNION SELECT b FROM t ORDER BY 1
SELECT id, lag(b) OVER (ORDER BY id) FROM t ORDER BY id
SELECT id FROM t WHERE j = '1'
SELECT DISTINCT j FROM t
SELECT min(b) FROM t
SELECT sum((b ->> 'a')::int) FROM t WHERE b ->> 'a' = '2'
SELECT json_agg(k ORDER BY id), jsonb_agg(n ORDER BY id DESC), json_agg(z) FROM t WHERE id < 3
SELECT json_agg(b ORDER BY id), jsonb_agg(j ORDER BY id) FROM t
SELECT json_agg(k) FROM t WHERE false
SELECT coalesce(json_agg(k), '[]'), coalesce(jsonb_agg(k), '[]'::jsonb) FROM t WHERE false
SELECT k, json_agg(id ORDER BY id), jsonb_agg(b -> 'a' ORDER BY id) FROM t GROUP BY k ORDER BY k
SELECT json_agg(k ORDER BY id) FILTER (WHERE k = 'a' AND b ? 'a') FROM t
SELECT id, json_agg(k) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t ORDER BY id
SELECT json_object_agg(id, k ORDER BY id), jsonb_object_agg(k, n ORDER BY id) FROM t WHERE id < 5
SELECT json_object_agg(k, id ORDER BY id), jsonb_object_agg('a', b ORDER BY id) FROM t
SELECT json_object_agg(b ->> 'none', id) FROM t
SELECT jsonb_object_agg(b ->> 'none', k) FROM t
SELECT json_object_agg(b, k) FROM t WHERE id = 0
SELECT json_agg(json_build_object('k', k, 'id', id) ORDER BY id) FROM t WHERE k LIKE 'b%'
SELECT json_agg(t ORDER BY t.id) FROM t WHERE id < 3
SELECT row_to_json(t), to_json(t), to_jsonb(t) FROM t WHERE id = 5
""".strip().splitlines()

# What Hasura, PostgREST and Prisma send, and rows of other kinds.
OF_ROWS = """
SELECT json_agg(t.*), jsonb_agg(t)
FROM (SELECT id AS "I d", k, NULL::text AS "{", ARRAY[id] AS list FROM t ORDER BY id) t;
SELECT id, jsonb_agg(k) FILTER (WHERE id > 2) OVER w AS x FROM t
WINDOW w AS (ORDER BY id) ORDER BY 1;
SELECT t.id, json_agg(u ORDER BY u.id) FROM t LEFT JOIN t u ON u.id = t.id + 12
GROUP BY t.id ORDER BY 1;
SELECT t.id, row_to_json(u) FROM t LEFT JOIN (SELECT id, k FROM t) u ON u.id = t.id + 12
ORDER BY 1;
SELECT row_to_json(x)::jsonb ->> 'k', json_agg(x) FROM t x WHERE id = 3
GROUP BY x.id, x.k, x.*;
SELECT json_agg(x)
FROM (SELECT 'y' AS y, t.k, p.* FROM t, p WHERE id < 3 ORDER BY id) x;
SELECT coalesce(json_agg("root"), '[]') AS "root"
FROM (SELECT row_to_json((SELECT "_e"
    FROM (SELECT "_b"."id" AS "id", "_b"."k" AS "name") AS "_e")) AS "root"
  FROM (SELECT * FROM t WHERE ('true') ORDER BY id LIMIT 4) AS "_b") AS "_r";
WITH s AS (SELECT t.id, t.k FROM t)
SELECT null::bigint, pg_catalog.count(_p), coalesce(json_agg(_p), '[]') AS body
FROM (SELECT * FROM s ORDER BY id) _p;
SELECT coalesce(jsonb_agg("__d"), '[]') AS "__d"
FROM (SELECT jsonb_build_object('id', t1.id, 'k', t1.k) AS "__d"
  FROM (SELECT t0.* FROM t AS t0 ORDER BY id) AS t1) AS t2;
SELECT t.id, x.list FROM t LEFT JOIN LATERAL (SELECT json_agg(y)::jsonb AS list
  FROM (SELECT u.k, u.n FROM t u WHERE u.k = t.k AND u.id < 4 ORDER BY u.id) y) x ON true
ORDER BY 1
""".strip().split(";")

INPUTS = [
    "",
    "{",
    "[1,]",
    '{"a"}',
    '{"a": 1,}',
    "nul",
    "01",
    "1 2",
    '"\\u0000"',
    '"\\ud83d"',
    '"\\x"',
    '"a\nb"',
    "{'a': 1}",
    "1e999999",
    "[" * 20000,
]


@pytest.fixture(scope="module")
def sides(stack):
    with stack.connect_app() as plain, stack.connect_app() as protected:
        for connection, name, p in ((plain, "json_plain", ""), (protected, "json_enc", "enc_")):
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
            connection.execute(f"CREATE SCHEMA {name}")
            connection.execute(f"SET search_path = {name}")
            connection.execute("SET timezone = 'America/New_York'")
            connection.execute("CREATE TABLE p AS SELECT 1 AS more")
            connection.execute(SETUP.format(p=p))
            for at, document in enumerate(DOCUMENTS):
                connection.execute(
                    "INSERT INTO t VALUES (%s, %s, %s, 'bb', 1, 2.50, '2024-02-29', "
                    "'2024-02-29 12:00+00', true, '\\x6162', '1 day 02:00', 0.5)",
                    [at, document, document],
                )
            connection.execute("UPDATE t SET k = 'a' WHERE id % 2 = 0")
        yield plain, protected


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(sides, expression):
    compare(sides, f"SELECT id, {expression} FROM t WHERE id IN (0, 2, 6, 12, 13) ORDER BY id")
    for at in range(len(DOCUMENTS)):
        compare(sides, f"SELECT {expression} FROM t WHERE id = {at}")


@pytest.mark.parametrize("statement", CONDITIONS + OF_ROWS)
def test_statement(sides, statement):
    compare(sides, statement)


def compare(sides, statement):
    plain, protected = (run(side, statement) for side in sides)
    assert (protected.sqlstate, protected.rows) == (plain.sqlstate, plain.rows), statement


@pytest.mark.parametrize("text", INPUTS)
@pytest.mark.parametrize("column", ["j", "b"])
def test_input(sides, column, text):
    def outcome(side):
        try:
            with side.transaction(force_rollback=True):
                side.execute(f"INSERT INTO t (id, {column}) VALUES (99, %s)", [text])
                return side.execute(f"SELECT {column}::text FROM t WHERE id = 99").fetchall()
        except psycopg.Error as error:
            return error.sqlstate, error.diag.message_primary

    plain, protected = map(outcome, sides)
    assert protected == plain


@pytest.mark.parametrize("binary", [False, True])
def test_parameters(sides, binary):
    value = {"key": [1, 2.5, None, "ä"]}

    def outcome(side):
        found = []
        with side.cursor(binary=binary) as cursor:
            for wrapped in (Json(value), Jsonb(value), '{"key": 1}'):
                with side.transaction(force_rollback=True):
                    cursor.execute("UPDATE t SET j = %s, b = %s WHERE id = 0", [wrapped] * 2)
                    cursor.execute("SELECT j, b FROM t WHERE b = %s::jsonb", [wrapped])
                    found.append(cursor.fetchall())
            cursor.execute("SELECT id FROM t WHERE b @> %s ORDER BY id", [Jsonb({"a": 2})])
            found.append(cursor.fetchall())
            cursor.execute("SELECT b -> %s, b #> %s FROM t WHERE id = 0", ["b", ["b", "c"]])
            found.append((cursor.fetchall(), [c.type_code for c in cursor.description]))
        return found

    plain, protected = map(outcome, sides)
    assert protected == plain


def test_constraints(sides):
    """Unique and primary keys on documents, updates in place, COPY both ways."""

    def outcome(side, p):
        side.execute(f"CREATE TABLE u (b {p}jsonb PRIMARY KEY, j {p}json)")
        found = [run(side, "INSERT INTO u VALUES ('{\"a\": 1.0}', '[ 1]')").sqlstate]
        found.append(run(side, "INSERT INTO u VALUES ('{\"a\": 1}')").sqlstate)
        with side.cursor().copy("COPY u FROM STDIN") as copy:
            copy.write_row(('{"b":  [2,1]}', '{"b":  [2,1]}'))
        with side.cursor().copy("COPY u TO STDOUT") as copy:
            found.append(sorted(bytes(line) for line in copy))
        side.execute("UPDATE u SET b = b || '{\"c\": 3}', j = to_json(b)")
        found.append(run(side, "SELECT b, j FROM u ORDER BY b").rows)
        side.execute("DROP TABLE u")
        return found

    plain, protected = sides
    assert outcome(protected, "enc_") == outcome(plain, "")


@pytest.mark.parametrize("expression", ["b @? '$.a'", "b @@ '$.a == 1'"])
def test_refused(sides, expression):
    """What is not there says what to use instead, and sends nothing."""
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        sides[1].execute(f"SELECT {expression} FROM t")
    assert "->>" in refused.value.diag.message_hint


@pytest.mark.parametrize(
    "query",
    [
        "SELECT json_agg(DISTINCT k) FROM t",
        # The columns of catalogs are not known, so the document would miss some.
        "SELECT json_agg(x) FROM (SELECT * FROM t, pg_am) x",
        "SELECT row_to_json(x) FROM (SELECT k, a.* FROM t, pg_get_keywords() a) x",
    ],
)
def test_refused_of_rows(sides, query):
    """What cannot be put together is refused, and nothing is left out."""
    with pytest.raises(psycopg.errors.FeatureNotSupported) as refused:
        sides[1].execute(query)
    hint = refused.value.diag.message_hint
    assert "subquery" in hint or "protected columns" in hint

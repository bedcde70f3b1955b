"""A value that is sealed anywhere in a statement is nowhere plain in it; and constants that meet a
protected value in a routine, or in a string that is parsed later, are not sent as plaintext.

Each form is sent with a distinct value, to a protected table and to its plain twin. Right: the
results are the same, and the server's log, which has every statement and parameter, does not have
the value. Bug: a proxy that classifies each constant separately sends `'x'::text IS NULL OR name =
'x'` with a plain `'x'`."""

import itertools

import psycopg
import pytest
from results import run

COUNTER = itertools.count()

TABLE = """CREATE TABLE p (id int, name enc_text, n enc_int4, note text);
INSERT INTO p VALUES (1, 'Ann', 100001, 'Ann'), (2, 'Bob', 100002, 'z'), (3, NULL, NULL, NULL)"""

# %(v)s is the value: a name that is there, or one that is not.
FORMS = [
    "SELECT id FROM p WHERE %(v)s::text IS NULL OR name = %(v)s ORDER BY id",
    "SELECT id FROM p WHERE %(v)s::text = '' OR name = %(v)s ORDER BY id",
    "SELECT id FROM p WHERE name = %(v)s OR %(v)s::text IS NULL ORDER BY id",
    "SELECT id FROM p WHERE %(v)s::text IS NULL OR name LIKE '%%' || %(v)s::text || '%%'",
    "SELECT id FROM p WHERE coalesce(%(v)s::text, '') = '' OR name = %(v)s ORDER BY id",
    "SELECT id FROM p WHERE length(%(v)s::text) = 0 OR lower(name) = lower(%(v)s::text)",
    "SELECT id FROM p WHERE note = %(v)s OR name = %(v)s ORDER BY id",
    "SELECT id FROM p WHERE note LIKE %(v)s OR name LIKE %(v)s ORDER BY id",
    "SELECT id FROM p WHERE note <> %(v)s AND name <> %(v)s ORDER BY id",
    "SELECT id, %(v)s::text FROM p WHERE name = %(v)s ORDER BY id",
    "SELECT CASE WHEN %(v)s::text <> '' THEN name = %(v)s END FROM p ORDER BY id",
    "UPDATE p SET name = %(v)s WHERE %(v)s::text IS NOT NULL AND name = %(v)s RETURNING id",
    "WITH a AS (SELECT %(v)s::text AS s) SELECT id FROM p, a WHERE a.s IS NULL OR name = a.s",
]

LITERAL_FORMS = [
    "SELECT md5(%(v)s), id FROM p WHERE name = %(v)s ORDER BY id",
    "SELECT id FROM p WHERE name ~ %(v)s OR name SIMILAR TO %(v)s ORDER BY id",
    "SELECT regexp_replace(name, %(v)s, 'x'), substring(name FROM %(v)s) FROM p ORDER BY id",
    "SELECT lpad(name, 40, %(v)s), split_part(name, %(v)s, 1) FROM p ORDER BY id",
    "SELECT string_agg(name, %(v)s ORDER BY id) FROM p",
    "SELECT id FROM p WHERE name = lpad(note, 20, %(v)s) ORDER BY id",
    "SELECT rank(%(v)s) WITHIN GROUP (ORDER BY name) FROM p",
    "SELECT id FROM p WHERE %(v)s = '' OR name = %(v)s ORDER BY id",
    "SELECT id FROM p WHERE %(v)s IS NULL OR name = %(v)s ORDER BY id",
    "SELECT id FROM p WHERE note IN ('Bob', %(v)s) OR name = %(v)s ORDER BY id",
    "SELECT %(v)s AS searched, id FROM p WHERE name = %(v)s ORDER BY id",
    "SELECT id FROM p WHERE name LIKE %(v)s ESCAPE '' ORDER BY id",
]


@pytest.fixture
def twins(app, plain_twin):
    """The protected table, and the plain one."""
    app.execute(TABLE)
    plain_twin.execute(TABLE.replace("enc_", ""))
    return app, plain_twin


def canary():
    return f"Canary{next(COUNTER):04}Qz"


def outcomes(twins, send):
    """What both answer, and whether the answers are the same."""
    protected, plain = (send(connection) for connection in twins)
    assert (protected.sqlstate, protected.rows) == (plain.sqlstate, plain.rows)
    return protected


def interpolated(connection, sql, params):
    with psycopg.ClientCursor(connection) as cursor:
        return run(connection, cursor.mogrify(sql, params))


@pytest.mark.parametrize("sql", FORMS + LITERAL_FORMS)
@pytest.mark.parametrize("how", ["interpolated", "parameters"])
def test_said_twice(stack, twins, sql, how):
    send = interpolated if how == "interpolated" else run
    unknown = canary()
    before = stack.log_sizes()
    for connection in twins[:1]:
        outcome = send(connection, sql, {"v": unknown})
        # 42P08: $1 IS NULL comes first and says no type, as on plain columns.
        assert outcome.sqlstate in (None, "42P08"), outcome.message
    assert unknown not in stack.logged_since(before)
    for value in ("Ann", "Bob", unknown, None):
        if value is None and how == "interpolated":
            continue
        outcomes(twins, lambda c, value=value: send(c, sql, {"v": value}))


def test_two_parameters_of_one_value(stack, twins):
    """Drivers with `?` send one value as two parameters."""
    value = canary()
    before = stack.log_sizes()
    for sql in (
        "SELECT id FROM p WHERE %s::text IS NULL OR name = %s",
        "SELECT id FROM p WHERE (%s::text = '' OR name = %s) ORDER BY id",
        "SELECT id FROM p WHERE %s::int4 IS NULL OR n = %s",
    ):
        given = "7777123" if "int4" in sql else value
        assert run(twins[0], sql, (given, given)).sqlstate is None
    seen = stack.logged_since(before)
    assert value not in seen
    assert "7777123" not in seen


def test_two_parameters_one_of_them_plain(stack, twins):
    """Beside a plain column, too: which values are equal is known when they come. With the bug the
    one that is compared with the plain column was in the log."""
    app, _ = twins
    sql = "SELECT id FROM p WHERE note = %s OR name = %s ORDER BY id"
    # Of the same statement before and after it is prepared again.
    for given in (("z", "Bob"), ("Ann", "Ann"), ("z", "Bob"), ("z", "nobody")):
        outcomes(twins, lambda c, given=given: run(c, sql, given))
    before = stack.log_sizes()
    values = [canary() for _ in range(3)]
    for value in values:
        for prepare in (False, True):
            assert app.execute(sql, (value, value), prepare=prepare).fetchall() == []
    sql += " -- prepared"
    with app.pipeline(), app.cursor() as cursor:
        for value in values:
            cursor.execute(sql, ("z", value), prepare=True)
            cursor.execute(sql, (value, value), prepare=True)
        cursor.execute(sql, ("z", "Ann"), prepare=True)
        assert cursor.fetchall() == [(1,), (2,)]
    seen = stack.logged_since(before)
    assert [v for v in values if v in seen] == []


def test_comments(stack, twins):
    """With the bug the comment was in the log."""
    app, _ = twins
    value = canary()
    before = stack.log_sizes()
    assert app.execute(f"SELECT id /* {value} */ FROM p WHERE name = 'Ann' -- {value}").fetchall()
    assert value not in stack.logged_since(before)
    with pytest.raises(psycopg.errors.UndefinedColumn) as error:
        app.execute("/* a comment */ SELECT nothing FROM p WHERE name = 'Ann'")
    assert error.value.diag.statement_position == "24"


def test_comments_in_bodies(stack, twins, dba):
    """Nor does one within the body of a routine that names something protected."""
    app, _ = twins
    value = canary()
    before = stack.log_sizes()
    app.execute(
        f"CREATE FUNCTION f() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN -- not {value}\n"
        f"RETURN (SELECT count(name) /* {value} */ FROM p); END $$"
    )
    app.execute(f"DO $body$ BEGIN /* {value} */ PERFORM name FROM p; END $body$")
    assert run(app, "SELECT f()").rows == [("2",)]
    quoted = (
        f"CREATE FUNCTION g() RETURNS bigint LANGUAGE sql AS 'SELECT count(name) FROM p -- {value}'"
    )
    assert run(app, quoted).sqlstate == "0A000"
    assert value not in stack.logged_since(before)
    bodies = dba.execute("SELECT prosrc FROM pg_proc WHERE proname = 'f'").fetchall()
    assert value not in str(bodies)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE p SET note = %(v)s WHERE name = %(v)s",
        "SELECT id FROM p WHERE note < %(v)s OR name = %(v)s",
    ],
)
def test_both_at_once(stack, twins, sql):
    """One parameter that a plain column gets and a protected one: not in the clear."""
    value = canary()
    before = stack.log_sizes()
    assert run(twins[0], sql, {"v": value}).sqlstate == "42P08"
    assert value not in stack.logged_since(before)


DOCUMENT = """'[{{"a": 1, "b": "{v}"}}]'"""
REFUSED = [
    "SELECT query_to_xml('SELECT id FROM p WHERE name = ' || '''{v}''', true, false, '')",
    "SELECT query_to_xml(format('SELECT id FROM p WHERE name = %L', '{v}'), true, false, '')",
    "SELECT query_to_xml(concat('SELECT id FROM p WHERE name = ''', '{v}', ''''), true, true, '')",
    "SELECT query_to_xml(replace('SELECT id FROM p WHERE name = ?', '?', quote_literal('{v}')), "
    "true, false, '')",
    "SELECT query_to_xml(array_to_string(ARRAY['SELECT id FROM p WHERE name = ''', '{v}', ''''], "
    "''), true, false, '')",
    "SELECT query_to_xml($$SELECT id FROM p WHERE name = '{v}'$$, true, false, '')",
    "SELECT query_to_xml($$VALUES ('{v}'::enc_text)$$, true, false, '')",
    "DO $$ BEGIN EXECUTE 'UPDATE p SET name = ''{v}'''; END $$",
    "CREATE FUNCTION f(a text) RETURNS bigint LANGUAGE sql AS "
    "$$ SELECT count(*) FROM p WHERE name = a $$; SELECT f('{v}')",
    "CREATE FUNCTION f(a text) RETURNS bigint LANGUAGE plpgsql AS "
    "$$ BEGIN RETURN (SELECT count(*) FROM p WHERE name = a); END $$; SELECT f('{v}')",
    f"INSERT INTO p (id, name) SELECT * FROM json_to_recordset({DOCUMENT}) AS x(a int, b text)",
    f"INSERT INTO p (id, name) SELECT * FROM json_to_recordset({DOCUMENT}) AS x(a int, b enc_text)",
    f"INSERT INTO p (name) SELECT value FROM json_each_text({DOCUMENT})",
    f"INSERT INTO p SELECT * FROM json_populate_recordset(NULL::p, {DOCUMENT})",
]


NUMBERS = [
    "SELECT id FROM p WHERE n = f(id, {v})",
    "UPDATE p SET n = f(id, {v})",
    "SELECT p.id FROM p JOIN (SELECT f(id, {v}) AS m FROM p) q ON p.n = q.m",
]


@pytest.mark.parametrize("sql", NUMBERS)
@pytest.mark.parametrize("overloaded", [False, True])
def test_numbers_in_functions_of_users(stack, twins, sql, overloaded):
    """What such a function gives back may be what it was given."""
    app, _ = twins
    app.execute("CREATE FUNCTION f(a int, b int) RETURNS int LANGUAGE sql RETURN b")
    if overloaded:
        app.execute("CREATE FUNCTION f(a enc_int4) RETURNS enc_int4 LANGUAGE sql RETURN a")
    value = 731000000 + next(COUNTER)
    before = stack.log_sizes()
    assert run(app, sql.format(v=value)).sqlstate == "0A000"
    assert str(value) not in stack.logged_since(before)
    assert run(app, "SELECT id FROM p WHERE id = f(id, 2) AND n = 100002").rows == [("2",)]


@pytest.mark.parametrize("sql", REFUSED)
def test_refused_before_it_is_sent(stack, twins, sql):
    value = canary()
    before = stack.log_sizes()
    assert run(twins[0], sql.format(v=value)).sqlstate == "0A000"
    assert value not in stack.logged_since(before)


JSON = [
    "INSERT INTO p (id, name) SELECT * FROM json_to_recordset(%s::json) AS x(a int, b text)",
    "INSERT INTO p (id, name) SELECT * FROM jsonb_to_recordset(%s) AS x(a int, b enc_text)",
    "INSERT INTO p (name) SELECT e ->> 'b' FROM json_array_elements(%s::json) AS e",
    "INSERT INTO p SELECT * FROM json_populate_record(NULL::p, %s)",
    "INSERT INTO p SELECT (json_populate_record(NULL::p, %s)).*",
]


@pytest.mark.parametrize("sql", JSON)
def test_fields_of_json_parameters(stack, twins, sql):
    """The fields would be in the clear within the parameter."""
    value = canary()
    before = stack.log_sizes()
    outcome = run(twins[0], sql, (f'[{{"a": 1, "b": "{value}", "name": "{value}"}}]',))
    assert outcome.sqlstate == "0A000", outcome.message
    assert value not in stack.logged_since(before)


def test_documents_are_sealed(stack, twins):
    """A document whose field goes into a protected column by an operator is sealed as a whole."""
    value = canary()
    before = stack.log_sizes()
    literal = f"{DOCUMENT.format(v=value)}::json -> 0 ->> 'b'"
    for sql, params in (
        (f"INSERT INTO p (id, name) SELECT 901, {literal}", None),
        ("INSERT INTO p (id, name) VALUES (902, %s::json ->> 'b')", (f'{{"b": "{value}"}}',)),
    ):
        outcome = run(twins[0], sql, params)
        assert outcome.sqlstate is None, outcome.message
    assert run(twins[0], "SELECT name FROM p WHERE id IN (901, 902)").rows == [(value,)] * 2
    assert value not in stack.logged_since(before)


def test_sql_as_a_parameter(stack, twins):
    value = canary()
    before = stack.log_sizes()
    for sql in ("SELECT query_to_xml(%s, true, false, '')", "SELECT %s::text"):
        outcome = run(twins[0], sql, (f"SELECT id FROM p WHERE name = '{value}'",))
        assert outcome.sqlstate == "0A000", outcome.message
    assert value not in stack.logged_since(before)
    assert run(twins[0], "SELECT %s::text", ("Select 'this' name = 5 from the list",)).rows


def test_a_change_by_others(stack, app, second, dba):
    """Of a column that was made protected by a session that does not come through the proxy, it
    knows with the next answer that any of its connections gets (docs/leakage.md)."""
    app.execute("CREATE TABLE late (a text)")
    app.execute("INSERT INTO late VALUES ('open')")
    dba.execute("DROP TABLE late; CREATE TABLE late (a enc_text); GRANT ALL ON late TO app")
    value = canary()
    before = stack.log_sizes()
    second.execute("SELECT 1")
    app.execute(f"INSERT INTO late VALUES ('{value}')")
    assert value not in stack.logged_since(before)
    assert run(app, "SELECT a FROM late").rows == [(value,)]


def test_constants_in_parsed_bodies(stack, twins):
    """The server keeps such a body parsed: its constants are sealed, as a view's are."""
    value = canary()
    before = stack.log_sizes()
    app = twins[0]
    app.execute(f"CREATE FUNCTION is_it(x enc_text) RETURNS bool LANGUAGE sql RETURN x = '{value}'")
    app.execute(
        "CREATE FUNCTION add() RETURNS void LANGUAGE sql BEGIN ATOMIC "
        f"INSERT INTO p (id, name) VALUES (9, '{value}'); END"
    )
    app.execute("SELECT add()")
    assert run(app, f"SELECT id, is_it(name), is_it('{value}') FROM p WHERE id IN (1, 9)").rows == [
        ("1", "f", "t"),
        ("9", "t", "t"),
    ]
    assert value not in stack.logged_since(before)

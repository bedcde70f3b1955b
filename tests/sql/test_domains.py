"""Domains over protected types, beside the same domains over plain ones.

Mechanism: a domain's values are those of its base type; the keeper evaluates its checks, whose
constants the proxy seals. Right: the same rows, types and SQLSTATEs. Bug: the domain was refused
(0A000); a check or a default is left out; a constant of a check, or a value, goes to the server in
the clear; a collection of garbage frees the values of a domain's column.
"""

import io

import psycopg
import pytest
from dumps import PSQL, another_database, restored, tool
from results import run

DOMAINS = [
    "CREATE DOMAIN {1}money AS {0}numeric(8, 2) CHECK (VALUE >= 0 AND VALUE < 5000)",
    "CREATE DOMAIN {1}name AS {0}text DEFAULT 'nobody' NOT NULL CHECK (VALUE <> '')"
    " CONSTRAINT short CHECK (length(VALUE) < 12)",
    "CREATE DOMAIN {1}day AS {0}date CHECK (VALUE > '2000-01-01')",
    "CREATE DOMAIN {1}rich AS {1}money CHECK (VALUE > 100)",
    "CREATE DOMAIN {1}code AS {0}varchar(3)",
]
TABLE = (
    "CREATE TABLE {1}t (id int, pay {1}money, who {1}name, on_day {1}day, much {1}rich, c {1}code)"
)
ROWS = (
    "INSERT INTO {1}t VALUES (1, 10, 'Ada', '2020-02-29', 200, 'x'),"
    " (2, '20.456', 'Bob', '2021-01-01', 4000, 'yy'), (3, NULL, 'Cyd', NULL, NULL, NULL)"
)
PLAIN, PROTECTED = ("", "p"), ("enc_", "e")


@pytest.fixture
def sides(app):
    for prefix in (PLAIN, PROTECTED):
        for statement in [*DOMAINS, TABLE, ROWS]:
            app.execute(statement.format(*prefix))
    return app


def both(connection, texts, *parameters):
    """The outcome of each statement is the same on both sides."""
    for text in texts if isinstance(texts, list) else [texts]:
        plain = run(connection, text.format(*PLAIN), *parameters)
        protected = run(connection, text.format(*PROTECTED), *parameters)
        want = (plain.sqlstate, plain.types, plain.rows)
        found = (protected.sqlstate, protected.types, protected.rows)
        assert found == want, (text, plain.message, protected.message)
    return plain


WORKS = [
    "SELECT * FROM {1}t ORDER BY id",
    "SELECT id, pay * 2, who || '!', on_day + 1, round(much), upper(c) FROM {1}t ORDER BY id",
    "SELECT id FROM {1}t WHERE pay > 15 OR who = 'Ada' ORDER BY pay DESC",
    "SELECT id FROM {1}t WHERE who LIKE 'B%' AND on_day BETWEEN '2020-06-01' AND '2022-01-01'",
    "SELECT sum(pay), max(who), count(DISTINCT c), min(on_day), avg(much) FROM {1}t",
    "SELECT who, count(*) FROM {1}t GROUP BY who ORDER BY who",
    "SELECT a.id, b.id FROM {1}t a JOIN {1}t b ON a.pay < b.pay OR a.who = b.who ORDER BY 1, 2",
    "SELECT a.id FROM {1}t a JOIN {1}t b USING (who) ORDER BY a.id",
    "SELECT pay FROM {1}t UNION SELECT much FROM {1}t ORDER BY 1",
    "SELECT coalesce(pay, 7), CASE WHEN pay > 15 THEN pay ELSE 1 END FROM {1}t ORDER BY id",
    "SELECT DISTINCT c FROM {1}t ORDER BY c",
    "SELECT '12.345'::{1}money, CAST('x' AS {1}name), {1}day '2020-05-05'",
    "SELECT 300::{1}rich, NULL::{1}money",
    "SELECT pay::{1}money, (pay + 200)::{1}rich FROM {1}t ORDER BY id",
    "SELECT id, row_number() OVER (ORDER BY who DESC) FROM {1}t ORDER BY id",
    "INSERT INTO {1}t (id, pay) VALUES (4, 1.005) RETURNING *",
    "INSERT INTO {1}t SELECT id + 10, pay, who, on_day, much, c FROM {1}t RETURNING id, pay, who",
    "UPDATE {1}t SET pay = pay + 1, who = lower(who), c = 'zzz' WHERE id < 3 RETURNING *",
    "UPDATE {1}t SET who = DEFAULT WHERE id = 1 RETURNING who",
    "DELETE FROM {1}t WHERE pay < 15 RETURNING id",
]
FAILS = {
    "INSERT INTO {1}t (id, pay) VALUES (4, -1)": "23514",
    "INSERT INTO {1}t (id, pay) VALUES (4, '5000')": "23514",
    "INSERT INTO {1}t (id, pay) VALUES (4, 12345678.9)": "22003",
    "INSERT INTO {1}t (id, who) VALUES (4, '')": "23514",
    "INSERT INTO {1}t (id, who) VALUES (4, 'much too long a name')": "23514",
    "INSERT INTO {1}t (id, who) VALUES (4, NULL)": "23502",
    "INSERT INTO {1}t (id, much) VALUES (4, 50)": "23514",
    "INSERT INTO {1}t (id, much) VALUES (4, 6000)": "23514",
    "INSERT INTO {1}t (id, c) VALUES (4, 'wxyz')": "22001",
    "INSERT INTO {1}t (id, on_day) VALUES (4, 'no day')": "22007",
    "INSERT INTO {1}t SELECT id, pay - 100 FROM {1}t": "23514",
    "UPDATE {1}t SET pay = pay - 15": "23514",
    "UPDATE {1}t SET who = '' WHERE id = 2": "23514",
    "SELECT '-3'::{1}money": "23514",
    "SELECT 50::{1}rich": "23514",
    "SELECT (pay - 1000)::{1}money FROM {1}t": "23514",
    "SELECT NULL::{1}name": "23502",
}


@pytest.mark.parametrize("statement", WORKS)
def test_works(sides, statement):
    assert both(sides, statement).sqlstate is None


@pytest.mark.parametrize("statement", FAILS)
def test_fails(sides, statement):
    assert both(sides, statement).sqlstate == FAILS[statement]


@pytest.mark.parametrize("binary", [False, True])
def test_parameters(sides, binary):
    """Of a domain's type, and cast to one, in both formats."""
    for prefix in (PLAIN, PROTECTED):
        with sides.cursor(binary=binary) as cursor:

            def rows(text, *values, cursor=cursor, prefix=prefix):
                return cursor.execute(text.format(*prefix), values).fetchall()

            insert = "INSERT INTO {1}t VALUES (%s, %s, %s, %s, %s, %s) RETURNING id, pay::text, who"
            for n in range(7):
                assert rows(insert, 20 + n, 3.255, "Eve", "2020-01-02", 101, "a") == [
                    (20 + n, "3.26", "Eve")
                ]
            for value in (-1, 5000):
                with pytest.raises(psycopg.errors.CheckViolation):
                    rows(insert, 30, value, "Eve", "2020-01-02", 101, "a")
            assert rows("SELECT id FROM {1}t WHERE pay = %s::{1}money AND id < 22", "3.26") == [
                (20,),
                (21,),
            ]
            with pytest.raises(psycopg.errors.CheckViolation):
                rows("SELECT %s::{1}money", "-1")


def test_definitions(sides):
    """ALTER DOMAIN, ALTER TABLE, constraints that are checked later, one text with all of it."""
    both(sides, "ALTER DOMAIN {1}money ADD CONSTRAINT small CHECK (VALUE < 15)")
    both(sides, "ALTER DOMAIN {1}money ADD CONSTRAINT small CHECK (VALUE < 15) NOT VALID")
    assert both(sides, "INSERT INTO {1}t (id, pay) VALUES (5, 16)").sqlstate == "23514"
    assert both(sides, "ALTER DOMAIN {1}money VALIDATE CONSTRAINT small").sqlstate == "23514"
    both(
        sides, ["ALTER DOMAIN {1}money DROP CONSTRAINT small", "ALTER DOMAIN {1}money SET NOT NULL"]
    )
    both(sides, "ALTER DOMAIN {1}code SET DEFAULT 'dd'")
    both(sides, "INSERT INTO {1}t (id, pay) VALUES (6, 16) RETURNING c")
    both(
        sides,
        [
            "ALTER DOMAIN {1}code DROP DEFAULT",
            "ALTER TABLE {1}t ADD COLUMN more {1}money DEFAULT 3",
        ],
    )
    both(sides, "SELECT id, more FROM {1}t ORDER BY id")
    both(sides, "ALTER TABLE {1}t ALTER c TYPE {1}name")
    both(sides, ["DELETE FROM {1}t WHERE c IS NULL", "ALTER TABLE {1}t ALTER c TYPE {1}name"])
    both(sides, ["SELECT id, c FROM {1}t ORDER BY id", "CREATE INDEX ON {1}t (pay, who)"])
    both(sides, ["SET enable_seqscan = off", "SELECT id FROM {1}t WHERE pay = 10", "RESET ALL"])
    whole = (
        "CREATE DOMAIN {1}late AS {0}text CHECK (VALUE <> 'bad'); CREATE TABLE {1}w (a {1}late);"
        " INSERT INTO {1}w VALUES ('good')"
    )
    both(sides, [whole, "SELECT * FROM {1}w", "INSERT INTO {1}w VALUES ('bad')"])


def test_routines(sides):
    both(
        sides,
        [
            "CREATE FUNCTION {1}f(a {1}money) RETURNS {1}money LANGUAGE plpgsql AS $$"
            " DECLARE b {1}money := a; BEGIN b := b + a; RETURN b; END $$",
            "SELECT {1}f(pay) FROM {1}t ORDER BY id",
            "SELECT {1}f(pay * 250) FROM {1}t ORDER BY id",
            "CREATE FUNCTION {1}g(a {1}money) RETURNS {1}money LANGUAGE plpgsql AS $$"
            " BEGIN IF a > 15 THEN RETURN a * 2; END IF; RETURN 7.005; END $$",
            "SELECT {1}g(pay), {1}g(4) FROM {1}t ORDER BY id",
            "CREATE FUNCTION {1}h(a {1}money) RETURNS {1}money LANGUAGE sql AS 'SELECT a - 12'",
            "SELECT {1}h(pay) FROM {1}t WHERE id = 2",
            "SELECT {1}h(pay) FROM {1}t ORDER BY id",
        ],
    )


def test_variables(sides):
    """The types of variables are known, so constants beside them are sealed or stay as they are.
    Bug: the plain routines are refused, because words of their bodies name something protected."""
    sides.execute("CREATE TABLE b (a enc_int4)")
    sides.execute("CREATE FUNCTION a(enc_int4) RETURNS enc_int4 LANGUAGE sql AS 'SELECT $1'")
    both(
        sides,
        [
            "CREATE FUNCTION {1}f(a {1}money) RETURNS {1}money LANGUAGE plpgsql AS $$"
            " DECLARE b {1}money := a; BEGIN b := b + a; RETURN b; END $$",
            "SELECT {1}f(pay) FROM {1}t ORDER BY id",
            "CREATE FUNCTION {1}g() RETURNS {1}money LANGUAGE plpgsql AS $$"
            " DECLARE a {1}money := 7.005; b CONSTANT {1}code DEFAULT 'xyz';"
            " BEGIN IF a > 5 AND b < 'z' THEN a := a + 3; END IF; RETURN a; END $$",
            "SELECT {1}g()",
            "CREATE FUNCTION {1}h() RETURNS {1}money LANGUAGE plpgsql AS $$"
            " DECLARE b {1}money := 5000; BEGIN RETURN b; END $$",
            "SELECT {1}h()",
        ],
    )


def test_copy(sides):
    for prefix in (PLAIN, PROTECTED):
        name = f"{prefix[1]}t"
        with sides.cursor() as cursor:
            with cursor.copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
                copy.write("7,1.239,Eve,2020-01-01,150,abc\n8,,Fay,,,\n")
            for bad in ("9,-1,Eve,,,", "9,1,,,,", "9,1,Eve,1999-01-01,,", "9,1,Eve,,,abcd"):
                with (
                    pytest.raises(
                        psycopg.errors.IntegrityError if bad[-1] != "d" else psycopg.Error
                    ),
                    cursor.copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy,
                ):
                    copy.write(bad + "\n")
    read = []
    for prefix in (PLAIN, PROTECTED):
        out = io.BytesIO()
        with sides.cursor().copy(f"COPY {prefix[1]}t TO STDOUT") as copy:
            for part in copy:
                out.write(part)
        read.append(out.getvalue())
    assert read[1] == read[0]
    assert b"1.24\tEve" in read[1]


def test_reflection(sides):
    """`information_schema` names the domain, as of plain ones."""
    query = (
        "SELECT column_name, substr(domain_name, 2), data_type"
        " FROM information_schema.columns WHERE table_name = '{1}t' ORDER BY ordinal_position"
    )
    plain, protected = (sides.execute(query.format(*p)).fetchall() for p in (PLAIN, PROTECTED))
    assert [row[:2] for row in protected] == [row[:2] for row in plain]
    checks = (
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contypid = '{1}money'::regtype"
    )
    assert "5000" in str(sides.execute(checks.format(*PROTECTED)).fetchall())


def test_without_a_client(sides, dba):
    """The server has no constant of a check; garbage is told from the column's values."""
    checks = "FROM pg_constraint WHERE contypid = 'emoney'::regtype"
    shown = dba.execute(f"SELECT string_agg(pg_get_constraintdef(oid), ' ') {checks}").fetchone()
    assert "5000" not in shown[0]
    sides.execute("DELETE FROM et WHERE id = 2")
    dba.execute("SET confide.gc_threshold = 0")
    dba.execute("VACUUM et")
    assert dba.execute("SELECT count(*) FROM et WHERE pay IS NULL").fetchone() == (1,)
    assert run(sides, "SELECT id, pay, who FROM et ORDER BY id").rows == [
        ("1", "10.00", "Ada"),
        ("3", None, "Cyd"),
    ]


def test_plain_catalogs(sides, stack, schema):
    """Where protected types appear as plain ones, domains are over plain ones. Bug: tools meet a
    type behind the domain that they do not know."""
    questions = [
        "SELECT column_name, data_type, udt_name, numeric_precision, substr(domain_name, 2)"
        " FROM information_schema.columns WHERE table_name = '{1}t' AND column_name <> 'much'"
        " ORDER BY ordinal_position",
        "SELECT format_type(t.typbasetype, t.typtypmod), t.typnotnull FROM pg_catalog.pg_type t"
        " WHERE t.typtype = 'd' AND t.typname ~ '^{1}(money|name|day|code)$' ORDER BY t.typname",
    ]
    with (
        stack.another_proxy(plain_catalogs="app") as (_, url),
        psycopg.connect(url, autocommit=True) as tools,
    ):
        tools.execute(f'SET search_path = "{schema}"')
        for question in questions:
            plain, protected = (
                tools.execute(question.format(*side)).fetchall() for side in (PLAIN, PROTECTED)
            )
            assert protected == plain
            assert len(plain) >= 4


@pytest.mark.parametrize("source", ["proxy", "straight"])
def test_dump(sides, stack, schema, source):
    """Restored through the proxy, whoever made it. Without a client its checks would say no."""
    through = source == "proxy"
    made = stack.app_url if through else stack.dba_url
    dump = tool("pg_dump", "-d", made, "-n", schema, "--no-owner")
    constants = (b"'5000'::enc_", b"'nobody'::enc_text")
    assert [constant in dump for constant in constants] == [through] * 2
    with another_database(stack) as addresses:
        tool(*PSQL, addresses["proxy"], stdin=dump, env=stack.restoring("restored"))
        with restored(addresses, schema) as other:
            rows = "SELECT * FROM {1}t ORDER BY id".format(*PROTECTED)
            assert run(other, rows).rows == run(sides, rows).rows
            for statement in ("INSERT INTO {1}t (id, pay) VALUES (9, -1)", "SELECT 50::{1}rich"):
                assert both(other, statement).sqlstate == "23514"
            assert both(other, "INSERT INTO {1}t (id) VALUES (9) RETURNING who").rows == [
                ("nobody",)
            ]


def test_planted_checks(app, dba, second):
    """What a client has not defined or authorised does not see values. Bug: a check that a
    superuser adds tells the database of each value that is stored."""
    planted = "CHECK (VALUE + VALUE > VALUE)"
    app.execute("CREATE DOMAIN d AS enc_int4 CHECK (VALUE > 0)")
    app.execute("CREATE TABLE w (a d, b enc_int4)")
    app.execute("INSERT INTO w VALUES (1, 2)")
    dba.execute(f"ALTER DOMAIN d ADD {planted} NOT VALID")
    changes = ["INSERT INTO w (a) SELECT b FROM w WHERE a = 1", "UPDATE w SET a = b"]
    for change in changes:
        assert run(second, change).sqlstate == "42501"
    assert run(app, "SELECT a, b FROM w").rows == [("1", "2")]
    app.execute(f"SELECT confide.authorise('ALTER DOMAIN d ADD {planted}')")
    for change in changes:
        assert run(second, change).sqlstate is None


def test_refused(app):
    for base in ("rnd_text", "enc_text[]"):
        with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
            app.execute(f"CREATE DOMAIN d AS {base} CHECK (VALUE IS NOT NULL)")
        assert "enc_" in caught.value.diag.message_detail
    app.execute("CREATE DOMAIN d AS enc_text")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        app.execute("SELECT '{a}'::d[]")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        app.execute("CREATE TABLE w (a d[])")

"""Values in places that the client's statement says nothing about: in notices and errors, and in
the rows of cursors and prepared statements that a routine has made. The database puts them there in
a client's session that may show the column, and the application shows messages to anybody.

Mechanism: the keeper seals a value for a message only if a statement of the session changes rows of
its table, or a client's routine that raises messages mentions its column; the proxy opens nothing
else in messages. Of a cursor that a routine has opened it opens what the routine's body selects.
Right: the envelope stays closed, or the connection ends (55000). Bug: the value is shown in the
clear.
"""

import contextlib

import psycopg
import pytest

SECRET = "Ada Lovelace"

SAY = "FOR r IN SELECT name FROM emp LOOP {} END LOOP;"
HEARD = {
    "notice": "RAISE NOTICE 'see %', r.name;",
    "warning": "RAISE WARNING USING MESSAGE = 'see', DETAIL = r.name;",
    "error": "RAISE EXCEPTION 'see %', r.name;",
    "violation": (
        "RAISE unique_violation USING MESSAGE = 'see', DETAIL = r.name, TABLE = 'directory', "
        "CONSTRAINT = 'directory_pkey';"
    ),
    "hint": "RAISE EXCEPTION USING MESSAGE = 'see', HINT = r.name;",
}
# Statements of the application, about plain columns and about protected ones.
STATEMENTS = {
    "insert": "INSERT INTO directory VALUES (2, 'x')",
    "select": "SELECT note FROM listed",
    "select protected": "SELECT name FROM emp",
}


@pytest.fixture
def emp(app):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, name enc_text)")
    app.execute(f"INSERT INTO emp VALUES (1, '{SECRET}')")
    app.execute("CREATE TABLE directory (id int PRIMARY KEY, note text)")
    app.execute("INSERT INTO directory VALUES (1, 'open')")
    app.execute("CREATE VIEW listed AS SELECT note FROM directory")
    return app


@pytest.fixture
def victim(emp, stack, schema):
    """Another session of the application, which may show the column and has changed no row of its
    table. (What a session has changed, messages in it may quote: docs/security.md.)"""
    with psycopg.connect(
        stack.app_url, autocommit=True, options=f"-c search_path={schema}"
    ) as connection:
        assert connection.execute("SELECT name FROM emp").fetchall() == [(SECRET,)]
        yield connection


@pytest.mark.ten(6)
@pytest.mark.parametrize("how", HEARD)
@pytest.mark.parametrize("name", STATEMENTS)
def test_heard(emp, victim, dba, attack, how, name):
    """A planted trigger, view or policy says what the application reads nowhere."""
    body = f"DECLARE r record; BEGIN {SAY.format(HEARD[how])}"
    dba.execute(
        "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS"
        f" $a$ {body} RETURN NEW; END $a$;"
        f"CREATE FUNCTION told(int) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS "
        f"$a$ {body} RETURN true; END $a$;"
        "CREATE TRIGGER planted BEFORE INSERT ON directory FOR EACH ROW EXECUTE FUNCTION planted();"
        "CREATE OR REPLACE VIEW listed AS SELECT note FROM directory WHERE told(id);"
    )
    if name == "select protected":
        dba.execute(
            "CREATE POLICY told ON emp USING (told(id));"
            "ALTER TABLE emp ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        )
    heard = []
    victim.add_notice_handler(
        lambda n: heard.append(f"{n.message_primary} {n.message_detail} {n.message_hint}")
    )
    try:
        victim.execute(STATEMENTS[name])
    except psycopg.Error as error:
        heard.append(f"{error} {error.diag.message_detail} {error.diag.message_hint}")
    assert heard, "nothing was said"
    attack.attempt(f"a value in a message, {how}, {name}", SECRET in str(heard))


def test_what_clients_need(emp):
    """Violations of constraints quote the rows that a statement changes."""
    app = emp
    app.execute(
        "CREATE TABLE t (k enc_int4 PRIMARY KEY, n enc_int4 CHECK (n > 0), name enc_text);"
        "CREATE TABLE c (k enc_int4 REFERENCES t)"
    )
    app.execute("INSERT INTO t VALUES (1, 5, 'Ann'), (2, 6, 'Bob')")
    app.execute("INSERT INTO c VALUES (1)")
    for sql, detail in {
        "INSERT INTO t VALUES (1, 1, 'x')": "Key (k)=(1) already exists.",
        "UPDATE t SET k = k + 1 WHERE name = 'Ann'": "Key (k)=(2) already exists.",
        "INSERT INTO t VALUES (3, 0, 'x')": "Failing row contains (3, 0, x).",
        "UPDATE t SET n = n - 6 WHERE k = 2": "Failing row contains (2, 0, Bob).",
        "INSERT INTO c VALUES (7)": 'Key (k)=(7) is not present in table "t".',
        "DELETE FROM t WHERE name = 'Ann'": 'Key (k)=(1) is still referenced from table "c".',
        "INSERT INTO t SELECT k, n, name FROM t WHERE k = 2": "Key (k)=(2) already exists.",
    }.items():
        with pytest.raises(psycopg.errors.IntegrityError) as refused:
            app.execute(sql)
        assert refused.value.diag.message_detail == detail, sql


OPENED = "SELECT opened('c')"


def opening(query):
    return (
        "CREATE OR REPLACE FUNCTION opened(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS "
        f"$a$ BEGIN OPEN c FOR {query}; RETURN c; END $a$"
    )


UNREAD = {
    "a string": (
        "CREATE FUNCTION opened(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS $a$ BEGIN "
        "OPEN c FOR EXECUTE 'SELECT id, name FROM emp'; RETURN c; END $a$",
        [OPENED, "FETCH ALL FROM c"],
    ),
    "a trigger": (
        "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $a$ DECLARE "
        "c refcursor := 'c'; BEGIN OPEN c FOR SELECT id, name FROM emp; RETURN NEW; END $a$;"
        "CREATE TRIGGER planted BEFORE INSERT ON directory FOR EACH ROW EXECUTE FUNCTION planted()",
        ["INSERT INTO directory VALUES (2, 'x')", "FETCH ALL FROM c"],
    ),
    "a prepared statement": (
        "CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $a$ BEGIN "
        "EXECUTE 'PREPARE q AS SELECT id, name FROM emp'; RETURN NEW; END $a$;"
        "CREATE TRIGGER planted BEFORE INSERT ON directory FOR EACH ROW EXECUTE FUNCTION planted()",
        ["INSERT INTO directory VALUES (2, 'x')", "EXECUTE q"],
    ),
}


@pytest.mark.ten(6)
@pytest.mark.parametrize("name", UNREAD)
def test_unread(emp, stack, schema, dba, attack, name):
    """Also by a connection that has never seen it otherwise: nothing of it is known."""
    planted, statements = UNREAD[name]
    dba.execute(planted)
    seen = []
    with (
        pytest.raises(psycopg.Error, match=r"a result is protected|meets a protected value"),
        psycopg.connect(stack.app_url, options=f"-c search_path={schema}") as other,
    ):
        assert other.execute("SELECT name FROM emp").fetchall() == [(SECRET,)]
        for sql in statements:
            cursor = other.execute(sql)
        with contextlib.suppress(psycopg.ProgrammingError):
            seen = cursor.fetchall()
    attack.attempt(f"a protected value in rows of {name}", SECRET in str(seen))


def test_cursors_that_are_read(emp):
    """What the body selects is shown: of arguments, variables, cursors that it declares, in
    routines that it calls, prepared and not."""
    emp.execute(opening("SELECT id, upper(name) AS name FROM emp"))
    emp.execute(
        "CREATE FUNCTION bound(n int) RETURNS refcursor LANGUAGE plpgsql AS $a$ DECLARE "
        "b CURSOR (m int) FOR SELECT name, note FROM emp JOIN directory USING (id) WHERE id = m; "
        "BEGIN OPEN b(n); RETURN b; END $a$"
    )
    emp.execute(
        "CREATE FUNCTION outer_one(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS "
        "$a$ BEGIN RETURN opened(c); END $a$"
    )
    with emp.transaction():
        for call in (OPENED, "SELECT * FROM outer_one('c')"):
            emp.execute(call)
            assert emp.execute("FETCH ALL FROM c").fetchall() == [(1, SECRET.upper())]
            emp.execute("CLOSE c")
            emp.execute(call, prepare=True)
            assert emp.execute("FETCH c", prepare=True).fetchall() == [(1, SECRET.upper())]
            emp.execute("CLOSE c")
        name = emp.execute("SELECT bound(%s)", (1,)).fetchone()[0]
        assert emp.execute(f'FETCH ALL FROM "{name}"').fetchall() == [(SECRET, "open")]

"""Through the proxy: a role created by the superuser, and protected values that the database puts
where the application reads plain ones.

Mechanism: the proxy serves only the roles on its own list (`users`), and opens only those columns
of a result that its binder considers protected. Right: 28000 for other roles; if a plain column
returns protected values, 55000 and the end of the connection. Bug: everything is shown as
plaintext.
"""

import psycopg
import pytest
from pinned import Pinned

SECRET = "Ada Lovelace"


@pytest.fixture
def emp(app):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, name enc_text)")
    app.execute(f"INSERT INTO emp VALUES (1, '{SECRET}')")
    app.execute("CREATE TABLE directory (id int, note text)")
    app.execute("INSERT INTO directory VALUES (1, 'open')")
    return app


SPIES = {
    "a superuser": "CREATE ROLE spy SUPERUSER LOGIN PASSWORD 'x'",
    "a member of the application's role": "CREATE ROLE spy LOGIN PASSWORD 'x' IN ROLE app",
}


@pytest.mark.ten(4)
@pytest.mark.parametrize("name", SPIES)
def test_role(stack, emp, dba, schema, attack, name):
    dba.execute("DROP ROLE IF EXISTS spy")
    dba.execute(SPIES[name])
    seen = []
    parts = psycopg.conninfo.conninfo_to_dict(stack.app_url)
    url = psycopg.conninfo.make_conninfo(**{**parts, "user": "spy", "password": "x"})
    try:
        with psycopg.connect(url, options=f"-c search_path={schema}", autocommit=True) as spy:
            seen = spy.execute("SELECT name FROM emp").fetchall()
    except psycopg.OperationalError as error:
        assert "does not serve the role" in str(error)
    finally:
        dba.execute("DROP ROLE spy")
    attack.attempt(f"read as {name}", SECRET in str(seen))


READS = {
    "simple": (False, "SELECT id, note FROM directory"),
    "extended": (True, "SELECT id, note FROM directory WHERE id = %s"),
    "returning": (False, "DELETE FROM directory WHERE id = 1 RETURNING note"),
}
# What reads the rows of a statement that was analysed before the table was replaced: what comes
# first, and the statements.
LATER = {
    "a prepared statement": ("", ["PREPARE q AS {}", "EXECUTE q"]),
    "a prepared statement, in one message": ("", ["PREPARE q AS {}; EXECUTE q"]),
    "a cursor": ("BEGIN", ["DECLARE c CURSOR FOR {}", "FETCH ALL FROM c"]),
    "a cursor, in one message": ("BEGIN", ["DECLARE c CURSOR FOR {}; FETCH c"]),
    "a cursor that is held": ("", ["DECLARE c CURSOR WITH HOLD FOR {}", "FETCH c"]),
}


def replace(dba):
    dba.execute("ALTER TABLE directory RENAME TO hidden")
    dba.execute("CREATE VIEW directory AS SELECT id, name AS note FROM emp")
    dba.execute("ALTER VIEW directory OWNER TO app")


@pytest.mark.ten(6)
@pytest.mark.parametrize("name", READS)
def test_swapped(emp, dba, attack, name):
    """The application's session knows the table as plain; then the table is replaced."""
    extended, sql = READS[name]
    arguments = (1,) if extended else None
    if name != "returning":
        assert emp.execute(sql, arguments).fetchall() == [(1, "open")]
    replace(dba)
    seen = []
    try:
        seen = emp.execute(sql, arguments).fetchall()
    except psycopg.OperationalError as error:
        assert "a result is protected" in str(error)
    attack.attempt(f"a protected value in a plain column, {name}", SECRET in str(seen))


@pytest.mark.ten(6)
@pytest.mark.parametrize("name", LATER)
def test_swapped_before(emp, dba, attack, name):
    """Rows of a cursor, or of a prepared statement, are opened as its text was understood."""
    first, statements = LATER[name]
    query = "SELECT id, note FROM directory"
    assert emp.execute(query).fetchall() == [(1, "open")]
    if first:
        emp.execute(first)
    replace(dba)
    seen = []
    with pytest.raises(psycopg.OperationalError, match="a result is protected"):
        for sql in statements:
            cursor = emp.execute(sql.format(query))
            while cursor.nextset():
                pass
            seen += cursor.fetchall() if cursor.description else []
    attack.attempt(f"a protected value in a plain column, {name}", SECRET in str(seen))


@pytest.mark.ten(6)
def test_swapped_output(emp, dba, attack):
    """A procedure with a plain output is replaced by one that gives a protected value. One that was
    declared with a protected output is opened."""
    body = "LANGUAGE plpgsql AS $$ BEGIN SELECT {} INTO n FROM {}; END $$"
    emp.execute("CREATE PROCEDURE named(INOUT n enc_text) " + body.format("name", "emp"))
    emp.execute("CREATE PROCEDURE noted(INOUT n text) " + body.format("note", "directory"))
    assert emp.execute("SELECT name FROM emp").fetchall() == [(SECRET,)]
    assert emp.execute("CALL named(NULL)").fetchall() == [(SECRET,)]
    assert emp.execute("CALL noted(NULL)").fetchall() == [("open",)]
    dba.execute("DROP PROCEDURE noted")
    dba.execute("CREATE PROCEDURE noted(INOUT n enc_text) " + body.format("name", "emp"))
    seen = []
    try:
        seen = emp.execute("CALL noted(NULL)").fetchall()
    except psycopg.OperationalError as error:
        assert "a result is protected" in str(error)
    attack.attempt("a protected value as the output of a procedure", SECRET in str(seen))


# What shows rows of a cursor that a routine of the client's has opened.
ROUTINES = """
CREATE FUNCTION opened(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS $$
BEGIN OPEN c FOR SELECT id, note FROM directory; RETURN c; END $$;
CREATE FUNCTION outer_one(c refcursor) RETURNS refcursor LANGUAGE plpgsql AS $$
BEGIN RETURN opened(c); END $$;
CREATE PROCEDURE opening(c refcursor) LANGUAGE plpgsql AS $$
BEGIN OPEN c FOR SELECT id, note FROM directory; END $$;
CREATE FUNCTION atomic(a int, b text DEFAULT 'x') RETURNS int BEGIN ATOMIC SELECT a + 1; END;
"""
BODY = """RETURNS refcursor LANGUAGE plpgsql AS $$
BEGIN OPEN c FOR SELECT id, name FROM emp; RETURN c; END $$"""
REPLACED = {
    "a function": (f"CREATE OR REPLACE FUNCTION opened(c refcursor) {BODY}", "SELECT opened('c')"),
    "one that another calls": (
        f"CREATE OR REPLACE FUNCTION opened(c refcursor) {BODY}",
        "SELECT outer_one('c')",
    ),
    "a procedure": (
        "CREATE OR REPLACE PROCEDURE opening(c refcursor) LANGUAGE plpgsql AS $$ "
        "BEGIN OPEN c FOR SELECT id, name FROM emp; END $$",
        "CALL opening('c')",
    ),
    "the catalog": (
        "UPDATE pg_proc SET prosrc = 'BEGIN OPEN c FOR SELECT id, name FROM emp; RETURN c; END' "
        "WHERE proname = 'opened'; ALTER FUNCTION opened COST 100",  # so that the proxy is told
        "SELECT opened('c')",
    ),
}


def read_opened(connection, call):
    """The rows of the routine's cursor, or why there are none."""
    try:
        with connection.transaction():
            connection.execute(call)
            return connection.execute("FETCH ALL FROM c").fetchall(), None
    except psycopg.Error as error:
        return [], error


@pytest.fixture
def routines(stack, emp):
    """A proxy with a pin of the client's tables and routines."""
    emp.execute(ROUTINES)
    pinned = Pinned(stack)
    pinned.write()
    pinned.start()
    yield pinned
    pinned.stop()


@pytest.mark.ten(6)
@pytest.mark.parametrize("name", REPLACED)
def test_replaced_routine(stack, routines, dba, schema, attack, name):
    """A routine of the client's opens a cursor for something protected, instead of something plain.
    With a pin no statement that calls it, directly or not, is sent."""
    replaced, call = REPLACED[name]
    path = f'"{schema}"'
    with routines.connect(path) as connection:
        assert connection.execute("SELECT name FROM emp").fetchall() == [(SECRET,)]
        assert read_opened(connection, call) == ([(1, "open")], None)
    dba.execute(replaced)
    with routines.connect(path) as connection:
        connection.execute("SELECT name FROM emp")
        seen, error = read_opened(connection, call)
    attack.attempt(f"replace {name}, with a pin", SECRET in str(seen))
    assert error.sqlstate == "55000"
    assert "is not as it is pinned" in error.diag.message_primary
    assert error.diag.message_detail
    assert "confide pin" in error.diag.message_hint
    with stack.connect_app(options=f"-c search_path={schema}") as connection:
        connection.execute("SELECT name FROM emp")
        seen, error = read_opened(connection, call)
    attack.attempt(
        f"replace {name}, without a pin",
        SECRET in str(seen),
        "the body of a function is what the database says, unless it is pinned",
    )
    assert seen == [(1, SECRET)]


CHANGED = {
    "SECURITY DEFINER": "ALTER FUNCTION opened SECURITY DEFINER",
    "its settings": "ALTER FUNCTION opened SET search_path = public",
    "its volatility": "ALTER FUNCTION opened STABLE",
    "another of its name": f"CREATE FUNCTION opened(c refcursor, more int DEFAULT 1) {BODY}",
    "another type": "DROP FUNCTION opened; CREATE FUNCTION opened(c text) RETURNS text "
    "LANGUAGE plpgsql AS $$ BEGIN RETURN c; END $$",
    "no function": "DROP FUNCTION opened",
    "a parsed body": "CREATE OR REPLACE FUNCTION atomic(a int, b text DEFAULT 'x') RETURNS int "
    "BEGIN ATOMIC SELECT a + 2; END",
    "a default": "CREATE OR REPLACE FUNCTION atomic(a int, b text DEFAULT 'y') RETURNS int "
    "BEGIN ATOMIC SELECT a + 1; END",
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed_routine(routines, dba, schema, name):
    """Whatever else is changed of a pinned routine; the others go on, and a pin that is written
    anew has the new one."""
    calls = ["SELECT opened('c')", "SELECT atomic(1)"]
    if "atomic" in CHANGED[name]:
        calls.reverse()
    dba.execute(CHANGED[name])
    with routines.connect(f'"{schema}"') as connection:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="as it is pinned"):
            connection.execute(calls[0])
        with connection.transaction():
            connection.execute(calls[1])
    assert "+ app." in routines.write().stdout or name == "no function"
    routines.process.terminate()
    routines.start()
    with routines.connect(f'"{schema}"') as connection:
        answer = read_opened(connection, calls[0])[1]
    assert answer is None or "pinned" not in str(answer)


def test_routine_in_front(routines, dba, schema):
    """One of the name in a schema that is searched first is not the pinned one."""
    first = f"{schema[:40]}_first"
    dba.execute(f'CREATE SCHEMA "{first}" AUTHORIZATION app')
    try:
        dba.execute(f'CREATE FUNCTION "{first}".opened(c refcursor) {BODY}')
        dba.execute(f'CREATE FUNCTION "{first}".new() RETURNS int LANGUAGE sql AS $$ SELECT 7 $$')
        with routines.connect(f'"{first}", "{schema}"') as connection:
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="pinned"):
                connection.execute("SELECT opened('c')")
            assert connection.execute("SELECT new()").fetchall() == [(7,)]
            call = f"SELECT \"{schema}\".opened('c')"
            assert read_opened(connection, call) == ([(1, "open")], None)
    finally:
        dba.execute(f'DROP SCHEMA "{first}" CASCADE')

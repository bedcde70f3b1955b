"""Through the proxy: a role created by the superuser, and protected values that the database puts
where the application reads plain ones.

Mechanism: the proxy serves only the roles on its own list (`users`), and opens only those columns
of a result that its binder considers protected. Right: 28000 for other roles; if a plain column
returns protected values, 55000 and the end of the connection. Bug: everything is shown as
plaintext.
"""

import psycopg
import pytest

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

"""The pin: with it the proxy keeps a column's literals sealed, or refuses the statement, whatever a
superuser does to the schema and however late the proxy learns of it."""

import contextlib
import itertools

import psycopg
import pytest
from pinned import Pinned

STATE = "55000"
ids = itertools.count(100)


@pytest.fixture
def pinned(stack, app):
    app.execute("CREATE TABLE emp (id int, name enc_text, pay enc_int4, note text)")
    app.execute("INSERT INTO emp VALUES (1, 'Ada', 5200, 'first')")
    pinned = Pinned(stack)
    pinned.write()
    pinned.start()
    yield pinned
    pinned.stop()


@pytest.fixture
def through(pinned, schema):
    """A connection through the proxy with the pin, which has the schema already."""
    with pinned.connect(f'"{schema}"') as connection:
        assert connection.execute("SELECT name FROM emp WHERE pay = 5200").fetchall() == [("Ada",)]
        connection.execute("PREPARE raise AS UPDATE emp SET pay = $1 WHERE id = 1")
        yield connection


def copy(connection, sql, data):
    with connection.cursor().copy(sql) as stream:
        stream.write(data)


def attempts(token):
    """Ways of a value to the column `pay`; none of them may arrive in the clear."""
    number = str(token)
    return {
        "literal": lambda c: c.execute(f"INSERT INTO emp (id, pay) VALUES (2, {number})"),
        "string": lambda c: c.execute(f"INSERT INTO emp (id, pay) VALUES (2, '{number}')"),
        "by position": lambda c: c.execute(f"INSERT INTO emp VALUES (2, NULL, {number})"),
        "update": lambda c: c.execute(f"UPDATE emp SET pay = {number} WHERE id = 1"),
        "condition": lambda c: c.execute(f"SELECT id FROM emp e WHERE e.pay > {number}"),
        "join": lambda c: c.execute(
            f"SELECT 1 FROM emp JOIN (VALUES ({number})) AS v(x) ON emp.pay = v.x"
        ),
        "parameter": lambda c: c.execute("UPDATE emp SET pay = %s", (number,)),
        "binary": lambda c: c.execute("UPDATE emp SET pay = %b", (token,)),
        "execute": lambda c: c.execute(f"EXECUTE raise ({number})"),
        "copy": lambda c: copy(c, "COPY emp (id, pay) FROM STDIN", f"2\t{number}\n"),
        "copy all": lambda c: copy(c, "COPY emp FROM STDIN", f"2\tx\t{number}\ty\n"),
        "do": lambda c: c.execute(f"DO $$ BEGIN UPDATE emp SET pay = {number}; END $$"),
        "view": lambda c: c.execute(f"CREATE VIEW rich AS SELECT id FROM emp WHERE pay > {number}"),
    }


def tokens():
    return 700_000_000 + next(ids) * 1_000_003


def try_all(connection, stack, dba):
    """Every attempt; what they were told. Nothing of them has arrived."""
    told, used = {}, []
    sizes = stack.log_sizes()
    for name in attempts(0):
        token = tokens()
        used.append(str(token))
        try:
            attempts(token)[name](connection)
            told[name] = None
        except psycopg.Error as error:
            told[name] = error.sqlstate
    shown = stack.logged_since(sizes)
    stored = str(dba.execute("SELECT * FROM emp").fetchall())
    for name, token in zip(told, used, strict=True):
        assert token not in shown, f"{name} is in the log"
        assert token not in stored, f"{name} is in the table"
    return told


ATTACKS = [
    "ALTER TABLE emp DROP COLUMN pay, ADD COLUMN pay int",
    "ALTER TABLE emp RENAME pay TO paid; ALTER TABLE emp ADD COLUMN pay text",
    "DROP TABLE emp; CREATE TABLE emp (id int, name enc_text, pay int, note text)",
    "DROP TABLE emp; CREATE TABLE emp (id int, name enc_text, note int, pay enc_int4)",
    "ALTER TABLE emp RENAME TO kept; "
    "CREATE VIEW emp AS SELECT id, name, length(note) AS pay, note FROM kept",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_connected(through, stack, dba, attack):
    """The proxy has the schema as it was."""
    dba.execute(attack)
    dba.execute("GRANT ALL ON emp TO app")
    try_all(through, stack, dba)


@pytest.mark.parametrize("attack", ATTACKS)
def test_new_connection(pinned, stack, dba, schema, attack):
    """The proxy sees what the table is now, and says so."""
    dba.execute(attack)
    dba.execute("GRANT ALL ON emp TO app")
    with pinned.connect(f'"{schema}"') as connection:
        told = try_all(connection, stack, dba)
        told.pop("execute")  # not prepared
        assert told.pop("do") in (STATE, "0A000")
        assert set(told.values()) == {STATE}
        with pytest.raises(psycopg.Error) as error:
            connection.execute("SELECT * FROM emp")
    diag = error.value.diag
    assert diag.sqlstate == STATE
    assert diag.message_primary == "table emp is not as it is pinned"
    assert "olumn" in diag.message_detail
    assert "confide pin" in diag.message_hint


def test_the_attack_works_without(pinned, stack, app, dba):
    """What the tests above look for is there when there is no pin."""
    sizes = stack.log_sizes()
    dba.execute(ATTACKS[0])
    dba.execute("GRANT ALL ON emp TO app")
    with stack.connect_app() as connection:
        connection.execute("SET search_path = " + dba.execute("SHOW search_path").fetchone()[0])
        connection.execute("CREATE TABLE other (i int)")  # the proxy reads the schema again
        token = str(tokens())
        connection.execute(f"INSERT INTO emp (id, pay) VALUES (2, {token})")
    assert token in stack.logged_since(sizes)


def test_gone(pinned, stack, dba, schema):
    sizes = stack.log_sizes()
    dba.execute("ALTER TABLE emp RENAME TO kept")
    token = str(tokens())
    with pinned.connect(f'"{schema}"') as connection:
        connection.execute("CREATE TABLE other (i int)")  # the proxy reads the schema again
        for table, state in ((f'"{schema}".emp', STATE), ("emp", "42P01")):
            with pytest.raises(psycopg.Error) as error:
                connection.execute(f"INSERT INTO {table} (pay) VALUES ({token})")
            assert error.value.sqlstate == state
    assert token not in stack.logged_since(sizes)


@pytest.mark.parametrize("connected", [True, False])
def test_another_table_of_the_name(pinned, stack, dba, schema, connected):
    """One before it on the search path."""
    first = f"{schema[:40]}_first"
    dba.execute(f'DROP SCHEMA IF EXISTS "{first}" CASCADE; CREATE SCHEMA "{first}"')
    dba.execute(f'GRANT ALL ON SCHEMA "{first}" TO app')
    shadow = f'CREATE TABLE "{first}".emp (id int, name text, pay int, note text)'
    with contextlib.ExitStack() as stack_:
        stack_.callback(dba.execute, f'DROP SCHEMA "{first}" CASCADE')
        if not connected:
            dba.execute(shadow)
        path = f'"{first}", "{schema}"'
        with pinned.connect(path) as connection:
            if connected:
                connection.execute("SELECT * FROM emp WHERE pay = 1")
                connection.execute("PREPARE raise AS UPDATE emp SET pay = $1 WHERE id = 1")
                dba.execute(shadow)
            dba.execute(f'GRANT ALL ON "{first}".emp TO app')
            dba.execute(f"SET search_path = {path}")
            told = try_all(connection, stack, dba)
            if not connected:
                told.pop("execute")
                assert told.pop("do") in (STATE, "0A000")
                assert set(told.values()) == {STATE}
            # With its schema it is meant.
            connection.execute(f'INSERT INTO "{schema}".emp (id, pay) VALUES (3, 31)')
            connection.execute(f'INSERT INTO "{first}".emp (id, pay) VALUES (3, 32)')
        assert dba.execute(f'SELECT pay FROM "{first}".emp').fetchall() == [(32,)]


def test_becomes_protected(pinned, stack, app, dba, schema):
    """Another session makes a plain column protected; the proxy learns it late."""
    dba.execute("DROP TABLE emp")
    dba.execute("CREATE TABLE emp (id int, name enc_text, pay int, note text)")
    dba.execute("GRANT ALL ON emp TO app")
    with pinned.connect(f'"{schema}"') as connection:
        connection.execute("SELECT 1")
        dba.execute("DROP TABLE emp")
        dba.execute("CREATE TABLE emp (id int, name enc_text, pay enc_int4, note text)")
        dba.execute("GRANT ALL ON emp TO app")
        told = try_all(connection, stack, dba)
        assert {told["literal"], told["parameter"], told["copy"]} == {None}
        assert connection.execute("SELECT count(*) FROM emp WHERE pay > 7").fetchone()[0] > 1


def test_a_column_that_hides_another(through, stack, dba):
    """A table within, not pinned, gets a column of a pinned one's name."""
    sizes = stack.log_sizes()
    dba.execute("CREATE TABLE dept (id int)")
    dba.execute("GRANT ALL ON dept TO app")
    query = "SELECT id FROM emp WHERE EXISTS (SELECT FROM dept WHERE pay > {})"
    through.execute(query.format(1))
    dba.execute("ALTER TABLE dept ADD COLUMN pay int")
    with psycopg.connect(through.info.dsn, password=through.info.password) as late:
        late.execute("SET search_path = " + dba.execute("SHOW search_path").fetchone()[0])
        for connection in (through, late):
            token = str(tokens())
            with contextlib.suppress(psycopg.Error):
                connection.execute(query.format(token))
            assert token not in stack.logged_since(sizes)


def test_what_is_not_pinned(through):
    """Other tables, and plain columns, are as without a pin."""
    through.execute("CREATE TABLE mine (id int, s enc_text)")
    through.execute("INSERT INTO mine VALUES (1, 'x')")
    through.execute("INSERT INTO emp (id, note) VALUES (7, 'clear')")
    through.execute("ALTER TABLE emp ADD COLUMN more text")
    assert through.execute("SELECT note FROM emp WHERE id = 7").fetchall() == [("clear",)]
    with pytest.raises(psycopg.Error) as error:
        through.execute("ALTER TABLE emp DROP COLUMN pay; INSERT INTO emp (id) VALUES (8)")
        through.execute("INSERT INTO emp (id) VALUES (8)")
    assert error.value.sqlstate == STATE


def test_command(pinned, app, schema):
    assert "as before" in pinned.write().stdout
    app.execute('CREATE TABLE "odd.Name" (a int, "the ""b""" enc_numeric(8,2))')
    line = f'app.{schema}."odd.Name"."the ""b""" enc_numeric 2'
    checked = pinned.write("--check", check=False)
    assert checked.returncode == 1
    assert f"+ {line}" in checked.stderr
    assert line not in pinned.file.read_text()
    with pinned.file.open("a") as file:
        file.write("elsewhere.s.t.c enc_text 1\n")
    assert f"+ {line}" in pinned.write().stdout
    assert line in pinned.file.read_text()
    assert "elsewhere.s.t.c enc_text 1" in pinned.file.read_text()
    app.execute("ALTER TABLE emp ALTER name TYPE enc_varchar(9)")
    shown = pinned.write().stdout
    assert f"- app.{schema}.emp.name enc_text 2" in shown
    assert f"+ app.{schema}.emp.name enc_varchar 2" in shown
    pinned.stop()
    pinned.write()
    pinned.start()
    with pinned.connect(f'"{schema}"') as connection:
        connection.execute('INSERT INTO "odd.Name" VALUES (1, 2)')


def test_a_database_without_confide(pinned):
    with pinned.file.open("a") as file:
        file.write("postgres.public.t.c enc_text 1\n")
    pinned.process.terminate()
    pinned.start()
    with pytest.raises(psycopg.OperationalError, match="does not have Confide"):
        psycopg.connect(pinned.url, dbname="postgres")


def test_reload(pinned, app, dba, schema, stack):
    """RELOAD reads the pin again: what is protected since counts for new connections. A file that
    cannot be read changes nothing. Without it the old pin stays, and a table that a superuser
    has put in a new one's place gets the value in the clear."""
    app.execute("CREATE TABLE later (pay enc_int4)")
    pinned.write()
    with psycopg.connect(psycopg.conninfo.make_conninfo(pinned.url, dbname="confide")) as console:
        console.autocommit = True
        pin = pinned.file.read_text()
        pinned.file.write_text("nonsense")
        with pytest.raises(psycopg.errors.ConfigFileError):
            console.execute("RELOAD")
        pinned.file.write_text(pin)
        console.execute("RELOAD")
    dba.execute("DROP TABLE later; CREATE TABLE later (pay int); GRANT ALL ON later TO app")
    token = tokens()
    sizes = stack.log_sizes()
    with pinned.connect(f'"{schema}"') as connection, pytest.raises(psycopg.Error) as told:
        connection.execute(f"INSERT INTO later VALUES ({token})")
    assert told.value.sqlstate == STATE
    assert str(token) not in stack.logged_since(sizes)


FAMILIES = {
    "rnd": ["ALTER TABLE kept DROP COLUMN v, ADD COLUMN v int"],
    "soft": [
        "ALTER TABLE kept DROP COLUMN v, ADD COLUMN v int",
        # More encodings than the owner has named, and another column's key.
        "ALTER TABLE kept DROP COLUMN v, ADD COLUMN v soft_int4(eq, ord, key_7)",
        "ALTER TABLE kept DROP COLUMN v, ADD COLUMN v soft_int4(eq, key_8)",
    ],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_families(pinned, app, dba, schema, family):
    """Columns of the other families are pinned, those of encodings with their modifier. Without it
    the value goes out in the clear, or with an encoding that tells more."""
    modifier = "(eq,key_7)" if family == "soft" else ""
    for attack in FAMILIES[family]:
        app.execute("DROP TABLE IF EXISTS kept")
        app.execute(f"CREATE TABLE kept (v {family}_int4{modifier}, id int)")
        dba.execute("ALTER TABLE kept DROP COLUMN id")
        pinned.stop()
        pinned.write()
        assert f"kept.v {family}_int4{modifier} 1" in pinned.file.read_text()
        pinned.start()
        with pinned.connect(f'"{schema}"') as connection:
            connection.execute("INSERT INTO kept VALUES (700000001)")
            assert connection.execute("SELECT v FROM kept").fetchall() == [(700000001,)]
        dba.execute(attack)
        with pinned.connect(f'"{schema}"') as connection:
            with pytest.raises(psycopg.Error) as error:
                connection.execute("INSERT INTO kept VALUES (700000002)")
            assert error.value.sqlstate == STATE
            assert f"{family}_int4{modifier}" in str(error.value).replace("enc_", "rnd_")
        assert dba.execute("SELECT count(*) FROM kept").fetchone() in ((0,), (1,))

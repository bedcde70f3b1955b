"""Sessions that outlive the server.

Mechanism: PostgreSQL is restarted while a client is idle outside of a transaction. The proxy
connects
again, sets the session's settings, and prepares each statement again when it is used. The server
reports whether the session has anything else (`extension/src/schema/kept.c`); then it ends.

Right answer: the client gets its rows and no error, with its settings. In a transaction, or with
something that cannot be made again, it gets the server's 57P01, as from PostgreSQL itself. Bug: an
error where nothing was lost; a session that goes on without a setting, a lock or a table that it
had; a statement that is executed twice; a session that an administrator has ended and that goes on.
"""

import contextlib
import threading

import psycopg
import pytest
from waiting import cancelled_while_it_sleeps, until_waits

TABLE = """
CREATE TABLE person (id int PRIMARY KEY, name enc_text);
INSERT INTO person VALUES (1, 'Ann'), (2, 'Bob');
"""
ANN = [(1, "Ann")]


@pytest.fixture
def person(app):
    app.execute(TABLE)
    return app


def ended(client, sql="SELECT 1"):
    """The session has ended, with the server's own error."""
    with pytest.raises(psycopg.OperationalError) as raised:
        client.execute(sql)
    assert client.closed
    return raised.value.sqlstate == "57P01" or "terminating connection" in str(raised.value)


def process(client):
    return client.execute("SELECT pg_backend_pid()").fetchone()[0]


def simple(client):
    return client.execute("SELECT id, name FROM person WHERE name = 'Ann'").fetchall()


def with_parameters(client):
    return client.execute("SELECT id, name FROM person WHERE name = %s", ("Ann",)).fetchall()


def prepared(client):
    sql = "SELECT id, name FROM person WHERE name = %s"
    return client.execute(sql, ("Ann",), prepare=True).fetchall()


def prepared_with_a_constant(client):
    sql = "SELECT id, name FROM person WHERE name = 'Ann' AND id = %s"
    return client.execute(sql, (1,), prepare=True).fetchall()


def prepared_plain(client):
    sql = "SELECT %s::int, 'Ann'"
    return client.execute(sql, (1,), prepare=True).fetchall()


FORMS = [simple, with_parameters, prepared, prepared_with_a_constant, prepared_plain]


def test_the_session_goes_on(stack, person):
    """Each form of statement is the first one after a restart once."""
    for form in FORMS:
        assert form(person) == ANN
    for form in FORMS:
        before = process(person)
        stack.restart_postgres()
        assert form(person) == ANN
        assert process(person) != before
    for form in FORMS:
        assert form(person) == ANN


SETTINGS = """
SET work_mem = '7MB';
SET TimeZone = 'Europe/Berlin';
SET app.tenant = 'it''s \\ 7';
SELECT set_config('app.user', 'Ann', false);
SET LOCAL app.passing = 'no';
SET lock_timeout = 99;
RESET lock_timeout;
SET ROLE app;
"""
IN_A_FUNCTION = """
CREATE FUNCTION sets() RETURNS void LANGUAGE plpgsql AS $$
BEGIN PERFORM set_config('app.inside', 'yes', false); END $$;
"""
NAMES = [
    "work_mem",
    "TimeZone",
    "app.tenant",
    "app.user",
    "app.passing",
    "app.inside",
    "app.undone",
    "lock_timeout",
    "search_path",
    "role",
    "DateStyle",
    "client_encoding",
]


def settings(client):
    rows = [client.execute("SELECT current_setting(%s, true)", (n,)).fetchone() for n in NAMES]
    return dict(zip(NAMES, [row[0] for row in rows], strict=True))


def test_settings(stack, person):
    person.execute(SETTINGS)
    person.execute(IN_A_FUNCTION)
    person.execute("SELECT sets()")
    person.execute("BEGIN")
    person.execute("SET app.undone = 'yes'")
    person.execute("SET work_mem = '9MB'")
    person.execute("SET client_encoding = 'LATIN1'")
    person.execute("ROLLBACK")
    person.execute("SET client_encoding = 'LATIN1'")
    before = settings(person)
    assert (before["work_mem"], before["app.tenant"]) == ("7MB", "it's \\ 7")
    assert (before["app.inside"], before["app.user"]) == ("yes", "Ann")
    for _ in range(2):
        stack.restart_postgres()
        after = settings(person)
        # A setting that was never set is unknown at the new server, and empty where it was undone.
        for name in ("app.undone", "app.passing"):
            assert (before[name] or "", after[name] or "") == ("", "")
            after[name] = before[name]
        assert after == before
    assert person.info.parameter_status("TimeZone") == "Europe/Berlin"
    assert person.info.encoding == "iso8859-1"
    person.execute("INSERT INTO person VALUES (3, 'Zoë')")
    assert person.execute("SELECT name FROM person WHERE name = 'Zoë'").fetchone() == ("Zoë",)


def test_in_a_transaction(stack, person, second):
    person.execute("BEGIN")
    person.execute("INSERT INTO person VALUES (3, 'Cid')")
    stack.restart_postgres()
    assert ended(person)
    assert second.execute("SELECT count(*) FROM person").fetchone() == (2,)


LOCKS = """
CREATE FUNCTION locks() RETURNS void LANGUAGE sql AS 'SELECT pg_advisory_lock(7)';
CREATE FUNCTION locks_and_fails() RETURNS void LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_advisory_lock(7); RAISE 'no'; END $$;
"""
KEPT = {
    "a table": "CREATE TEMP TABLE t (i int)",
    "dropped": "CREATE TEMP TABLE t (i int) ON COMMIT DROP",
    "notifications": "LISTEN news",
    "a lock": "SELECT pg_advisory_lock(7)",
    "a lock in a function": "SELECT locks()",
    "a lock of what has failed": "SELECT locks_and_fails()",
    "a lock in a block": "DO 'BEGIN PERFORM pg_try_advisory_lock(7); END'",
    "a cursor": "DECLARE c CURSOR WITH HOLD FOR SELECT name FROM person",
    "a statement": "PREPARE p AS SELECT 1",
    "a random number": "SELECT setseed(0.5)",
}


@pytest.mark.parametrize("what", KEPT)
def test_what_cannot_be_made_again(stack, person, what):
    person.execute(LOCKS)
    try:
        person.execute(KEPT[what])
    except psycopg.errors.RaiseException:
        assert "failed" in what
    stack.restart_postgres()
    assert ended(person)


def test_what_was_discarded(stack, person):
    schema = person.execute("SHOW search_path").fetchone()[0]
    for what in ("a lock", "a statement", "a cursor", "notifications"):
        person.execute(KEPT[what])
    person.execute("DISCARD ALL")
    person.execute(f"SET search_path = {schema}")
    stack.restart_postgres()
    assert prepared(person) == ANN


def test_an_administrator_ends_it(stack, person):
    """The server was not restarted: the session ends."""
    before = process(person)
    with stack.connect_dba() as dba:
        assert dba.execute("SELECT pg_terminate_backend(%s, 60000)", (before,)).fetchone() == (
            True,
        )
    assert ended(person)


def while_it_runs(stack, client, sql, event, prepare=None):
    """Restarts the server while the statement waits in its execution; its outcome. A statement that
    is to be prepared is executed in the pipeline that prepares it."""
    outcome = []

    def execute():
        try:
            with client.pipeline() if prepare else contextlib.nullcontext():
                cursor = client.execute(sql, prepare=prepare)
            outcome.append(cursor.rowcount)
        except psycopg.Error as error:
            outcome.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    until_waits(stack, client, event)
    stack.restart_postgres()
    thread.join()
    return outcome[0]


@pytest.mark.parametrize("prepare", [False, True])
def test_a_statement_that_was_undone(stack, person, prepare):
    """It is executed again, and once only has an effect; where it was prepared before, its name is
    free again. Bug: 42P05."""
    sql = """INSERT INTO person SELECT i, 'x' || i
             FROM pg_advisory_xact_lock(4711), generate_series(10, 19) i"""
    with stack.connect_dba() as dba:
        dba.execute("SELECT pg_advisory_lock(4711)")  # until the restart
        assert while_it_runs(stack, person, sql, "advisory", prepare) == 10
    assert person.execute("SELECT count(*) FROM person").fetchone() == (12,)


def test_a_statement_that_may_have_had_effects(stack, person, second):
    sql = "DO $$ BEGIN DELETE FROM person WHERE id = 2; COMMIT; PERFORM pg_sleep(600); END $$"
    outcome = while_it_runs(stack, person, sql, "PgSleep")
    assert isinstance(outcome, psycopg.OperationalError)
    assert second.execute("SELECT count(*) FROM person").fetchone() == (1,)


def test_statements_of_the_protocol(stack, person):
    """Until they are used they are deallocated as before, and EXECUTE does not find another."""
    sql = b"SELECT name FROM person WHERE id = 1"
    for name in (b"one", b"two"):
        person.pgconn.prepare(name, sql)
    stack.restart_postgres()
    person.execute("DEALLOCATE one")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        person.execute("EXECUTE two")
    described = person.pgconn.describe_prepared(b"two")
    assert described.nfields == 1
    result = person.pgconn.exec_prepared(b"two", None)
    assert result.get_value(0, 0) == b"Ann"
    assert person.execute("EXECUTE two").fetchall() == [("Ann",)]


def test_cancel(stack, person):
    """The client's key is the one that it was given at the start."""
    stack.restart_postgres()
    assert simple(person) == ANN
    with cancelled_while_it_sleeps(stack, person), pytest.raises(psycopg.errors.QueryCanceled):
        person.execute("SELECT pg_sleep(600)")


def test_a_crash(stack, person):
    """Without a word from the server an idle session goes on all the same."""
    assert prepared(person) == ANN
    stack.kill_postgres()
    stack.start_postgres()
    assert prepared(person) == ANN


def test_off(stack, schema):
    with stack.another_proxy(reconnect_seconds="0") as (_, url):
        client = psycopg.connect(url, autocommit=True)
        client.execute("SELECT 1")
        stack.restart_postgres()
        assert ended(client)


def test_a_password_that_the_proxy_does_not_know(stack):
    """The server authenticates the user: the proxy cannot do that in its place."""
    with stack.connect_dba() as dba:
        dba.execute("CREATE ROLE relayed LOGIN PASSWORD 'secret'")
    try:
        with stack.another_proxy(users="relayed") as (_, url):
            client = psycopg.connect(url, user="relayed", password="secret", autocommit=True)
            client.execute("SELECT 1")
            stack.restart_postgres()
            assert ended(client)
    finally:
        with stack.connect_dba() as dba:
            dba.execute("DROP ROLE relayed")

"""Values that the client has sealed itself, fitted to their columns (the proxy's fit_values), in
the hands of code that a superuser plants in its session, and of one who has the server's log.

Mechanism: such a value is stored under an identifier that the database chooses from the session's
lease (`Adopt`); its envelope names the column and opens under the keys of its session only. Right:
what the client has sealed may appear in other rows of its column, as when rows are exchanged, and
where a statement of the session stores constants anyway; nowhere else, in no message, and in no
other session. Bug: it appears in another table, in a message, or wherever its envelope is written
again.
"""

import psycopg
import pytest

PAY, OWN = 5200, 100
EXCHANGED = "values of that session in other rows of the column, as when rows are exchanged"
CONSTANT = "constants of the client go wherever a statement of the session stores constants"


@pytest.fixture
def victim(stack, schema, app, dba):
    dba.execute("GRANT pg_monitor TO app")
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4, bonus enc_int4)")
    app.execute("CREATE TABLE own (id int, pay enc_int4)")
    dba.execute("CREATE TABLE seen (what text)")
    dba.execute("GRANT ALL ON seen TO app")
    with (
        stack.another_proxy(fit_values="true") as (_, url),
        psycopg.connect(url, autocommit=True) as connection,
    ):
        connection.execute(f"SET search_path = {schema}")
        before = adopted(connection)
        connection.execute(f"INSERT INTO emp VALUES (8, {OWN}, 8)")
        assert adopted(connection) > before, "values are not fitted"
        yield connection


def adopted(connection):
    asked = "SELECT value FROM confide.stat_keeper() WHERE name = 'session.messages.Adopt'"
    row = connection.execute(asked).fetchone()
    return int(row[0]) if row else 0


def plant(dba, body):
    dba.execute(
        "CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$DECLARE it text; BEGIN {body}; RETURN NEW; END$$"
    )
    dba.execute("CREATE TRIGGER take BEFORE INSERT ON emp FOR EACH ROW EXECUTE FUNCTION take()")


def write(connection):
    """Both rows as the client writes them; the last error."""
    state = None
    for row in (f"1, {PAY}, 1", f"2, {OWN}, 2"):
        try:
            connection.execute(f"INSERT INTO emp VALUES ({row})")
        except psycopg.Error as error:
            state = error.sqlstate
    return state


def shown(connection):
    """What the client sees where PAY does not belong."""
    rows = connection.execute("SELECT pay, bonus FROM emp WHERE id <> 1").fetchall()
    rows += connection.execute("SELECT bonus, bonus FROM emp").fetchall()
    rows += connection.execute("SELECT pay, pay FROM own").fetchall()
    return {value for row in rows for value in row}


# The envelope of `pay`, as the statement has it; the trigger writes it again.
TAKEN = (
    "it := (regexp_match(current_query(), '(cfd1\\.[A-Za-z0-9_-]{20,})'))[1]; "
    "INSERT INTO seen VALUES (it); "
)
# The body of a trigger, the error that the client gets, and why it may succeed.
PLANTED = {
    "another row": (
        "IF NEW.id = 2 THEN SELECT pay INTO NEW.pay FROM emp WHERE id = 1; END IF",
        None,
        EXCHANGED,
    ),
    "another column that the statement writes": ("NEW.bonus := NEW.pay", None, CONSTANT),
    "another table": ("INSERT INTO own VALUES (NEW.id, NEW.pay)", "42501", ""),
    "another table, by its envelope": (
        f"{TAKEN} EXECUTE format('INSERT INTO own VALUES (1, %L)', it)",
        "42501",
        "",
    ),
    "another column, by its envelope": (
        f"{TAKEN} EXECUTE format('SELECT %L::enc_int4', it) INTO NEW.bonus",
        None,
        CONSTANT,
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted(victim, dba, attack, name):
    body, error, allowed = PLANTED[name]
    plant(dba, body)
    state = write(victim)
    taken = [it for (it,) in dba.execute("SELECT what FROM seen").fetchall()]
    assert all(it.startswith("cfd1.") for it in taken)
    attack.attempt(f"a fitted value into {name}", PAY in shown(victim), allowed)
    assert state == error


# What a trigger quotes.
QUOTED = {
    "its value": ("NEW.pay", "constants of the client may be quoted always"),
    "its envelope": ("it", ""),
}


@pytest.mark.parametrize("name", QUOTED)
def test_in_a_message(victim, dba, attack, name):
    """What the client has sealed itself it does not open in messages, only what the keeper has
    sealed for them."""
    said = []
    victim.add_notice_handler(lambda notice: said.append(notice.message_primary))
    what, allowed = QUOTED[name]
    plant(dba, f"{TAKEN} RAISE NOTICE 'pay: %', {what}")
    victim.execute(f"INSERT INTO emp VALUES (1, {PAY}, 1)")
    ((envelope,),) = dba.execute("SELECT what FROM seen").fetchall()
    assert said in ([f"pay: {PAY}"], [f"pay: {envelope}"])
    attack.attempt(f"{name} of a fitted value in a message", str(PAY) in said[0], allowed)


def test_another_session(stack, schema, victim, dba, app, attack):
    """The envelope is in the server's log: he writes it, also in another client's session."""
    plant(dba, TAKEN.removesuffix("; "))
    victim.execute(f"INSERT INTO emp VALUES (1, {PAY}, 1)")
    ((envelope,),) = dba.execute("SELECT what FROM seen").fetchall()
    dba.execute("DROP FUNCTION take CASCADE")
    states = []
    with pytest.raises(psycopg.Error) as error:
        dba.execute(f"INSERT INTO own VALUES (1, '{envelope}')")
    states.append(error.value.sqlstate)
    plant(dba, f"NEW.pay := '{envelope}'")
    with pytest.raises(psycopg.Error) as error:
        app.execute(f"INSERT INTO emp VALUES (3, {OWN}, 3)")
    states.append(error.value.sqlstate)
    attack.attempt("a fitted value in another session", PAY in shown(victim))
    assert states == ["42501", "28000"]

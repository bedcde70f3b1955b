"""Values that the client has sealed itself, fitted to their columns (the proxy's fit_values), in the
hands of code that a superuser plants in its session, and of one who has the server's log.

Mechanism: such a value is stored under an identifier that the database chooses from the session's lease
(`Adopt`); its envelope names the column and opens under the keys of its session only. Right: what the client
has sealed for a column may appear in another row of this column, as when rows are exchanged; nowhere else,
in no message, and in no other session. Bug: it appears in another column or table, in a message, or where
its envelope is written again.
"""

import re

import psycopg
import pytest

PAY, OWN = 5200, 100
EXCHANGED = "values of that session in other rows of the column, as when rows are exchanged"
ENVELOPE = re.compile(r"'(cfd1\.[A-Za-z0-9_-]{20,})'")


@pytest.fixture
def victim(stack, schema, app, dba):
    dba.execute("GRANT pg_monitor TO app")
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4, bonus enc_int4)")
    app.execute("CREATE TABLE own (id int, pay enc_int4)")
    with stack.another_proxy(fit_values="true") as (_, url):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"SET search_path = {schema}")
            yield connection


def adopted(connection):
    asked = "SELECT value FROM confide.stat_keeper() WHERE name = 'session.messages.Adopt'"
    row = connection.execute(asked).fetchone()
    return int(row[0]) if row else 0


def plant(dba, body, of="emp"):
    dba.execute(
        f"CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN {body} END$$;"
        f"CREATE TRIGGER take BEFORE INSERT ON {of} FOR EACH ROW EXECUTE FUNCTION take()"
    )


def write(connection):
    """Both rows as the client writes them. What came of it."""
    state = None
    for row in (f"1, {PAY}, 1", f"2, {OWN}, 2"):
        try:
            connection.execute(f"INSERT INTO emp VALUES ({row})")
        except psycopg.Error as error:
            state = error.sqlstate
    return state


def shown(connection):
    """What the client sees where its other value does not belong."""
    rows = connection.execute("SELECT pay, bonus FROM emp WHERE id = 2").fetchall()
    rows += connection.execute("SELECT bonus, bonus FROM emp").fetchall()
    rows += connection.execute("SELECT pay, pay FROM own").fetchall()
    return {value for row in rows for value in row}


# The body of a trigger, and why it may succeed.
PLANTED = {
    "another row": (
        "IF NEW.id = 2 THEN SELECT pay INTO NEW.pay FROM emp WHERE id = 1; END IF; RETURN NEW;",
        EXCHANGED,
    ),
    "another column": ("NEW.bonus := NEW.pay; RETURN NEW;", ""),
    "another table": ("INSERT INTO own VALUES (NEW.id, NEW.pay); RETURN NEW;", ""),
    "another column, by its envelope": (
        "NEW.bonus := (regexp_match(current_query(), '(cfd1\\.[A-Za-z0-9_-]{20,})'))[1]::enc_int4; "
        "RETURN NEW;",
        "",
    ),
    "another table, by its envelope": (
        "INSERT INTO own VALUES (NEW.id, "
        "(regexp_match(current_query(), '(cfd1\\.[A-Za-z0-9_-]{20,})'))[1]::enc_int4); RETURN NEW;",
        "",
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted(victim, dba, attack, name):
    before = adopted(victim)
    victim.execute(f"INSERT INTO emp VALUES (8, {OWN}, 8)")
    assert adopted(victim) > before, "values are not fitted"
    body, allowed = PLANTED[name]
    plant(dba, body)
    state = write(victim)
    print(name, state, shown(victim))
    attack.attempt(f"a fitted value into {name}", PAY in shown(victim), allowed)

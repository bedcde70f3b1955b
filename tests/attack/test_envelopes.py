"""A superuser imports the export envelope of a victim's value into another row, column or database,
which he can read with an account of his own.

Mechanism: by default the keeper accepts export envelopes only with a restore ticket, and an
envelope names its database and column. Right: 42501, also in a client's session. With
`take_exports` the envelope can be imported into any row of its own column, but nowhere else. Bug:
the attacker's row shows 5200.
"""

import contextlib

import psycopg
import pytest
from waiting import until

pytestmark = pytest.mark.ten(5)

WAYS = {
    "row": "UPDATE emp SET pay = '{}' WHERE id = 2",
    "column": "UPDATE emp SET bonus = '{}' WHERE id = 2",
    "table": "INSERT INTO own VALUES (2, '{}')",
    "default": "ALTER TABLE own ALTER pay SET DEFAULT '{}'; INSERT INTO own (id) VALUES (3)",
    "table of the name": "ALTER TABLE emp RENAME TO old; CREATE TABLE emp (id int, pay enc_int4, "
    "bonus enc_int4); GRANT ALL ON emp TO app; INSERT INTO emp VALUES (2, '{}', NULL)",
}
OWN_COLUMN = "take_exports is on: an export envelope goes into any row of its column"


@pytest.fixture
def emp(app):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4, bonus enc_int4)")
    app.execute("CREATE TABLE own (id int, pay enc_int4)")
    app.execute("INSERT INTO emp VALUES (1, 5200, 1), (2, 100, 1)")
    return app


def stolen(stack, schema):
    with stack.connect_app(options=f"-c search_path={schema}") as app:
        rows = app.execute("SELECT pay, bonus FROM emp WHERE id = 2").fetchall()
        rows += app.execute("SELECT pay, pay FROM own").fetchall()
    return "5200" in str(rows)


def attempt(stack, schema, name, ticket=None):
    """Returns the SQLSTATE of a refusal, and whether the attacker sees the value."""
    with stack.connect_dba(options=f"-c search_path={schema}") as dba:
        (envelope,) = dba.execute("SELECT pay FROM emp WHERE id = 1").fetchone()
        if ticket:
            dba.execute(f"SET confide.restore_ticket = '{ticket}'")
        try:
            dba.execute(WAYS[name].format(envelope))
            state = None
        except psycopg.Error as error:
            state = error.sqlstate
    return state, stolen(stack, schema)


@pytest.mark.parametrize("name", WAYS)
def test_not_taken_in(stack, emp, schema, attack, name):
    state, got = attempt(stack, schema, name)
    attack.attempt(f"an envelope into another {name}", got)
    assert state == "42501"


@pytest.mark.parametrize("name", WAYS)
def test_own_column(stack, emp, schema, attack, name):
    stack.kill_keeper()
    stack.start_keeper(CONFIDE_KEEPER_TAKE_EXPORTS="true")
    try:
        state, got = attempt(stack, schema, name)
    finally:
        stack.kill_keeper()
        stack.start_keeper()
    own = name in ("row", "table of the name")
    attack.attempt(f"an envelope into another {name}, take_exports", got, OWN_COLUMN if own else "")
    assert state == (None if own else "42501")


def test_ticket_of_another_column(stack, emp, schema, attack):
    """A ticket allows values in the columns that it names, from columns with the same names."""
    ticket = stack.ticket("app", "--place", f"{schema}.own", "--uses", "0")
    for name in WAYS:
        if name == "table of the name":
            continue
        state, got = attempt(stack, schema, name, ticket)
        attack.attempt(f"an envelope into another {name}, with a ticket for own", got)
        assert state == "42501"


def test_used_ticket(stack, emp, schema, attack):
    ticket = stack.ticket("app")
    state, _ = attempt(stack, schema, "row", ticket)
    assert state is None
    emp.execute("UPDATE emp SET pay = 100 WHERE id = 2")
    state, got = attempt(stack, schema, "row", ticket)
    attack.attempt("a restore ticket that was used", got)
    assert state == "42501"


PLANT = """
CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS $attack$
BEGIN NEW.pay := '{}'; RETURN NEW; END $attack$;
CREATE TRIGGER take BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION take();
"""


def test_in_a_clients_session(stack, emp, dba, schema, attack):
    """An envelope in a trigger's body, or one that the application was given."""
    (envelope,) = dba.execute("SELECT pay FROM emp WHERE id = 1").fetchone()
    for sql, parameters in [
        ("INSERT INTO own VALUES (2, %s)", [envelope]),
        (f"INSERT INTO own VALUES (2, '{envelope}')", []),
    ]:
        with contextlib.suppress(psycopg.Error):
            emp.execute(sql, parameters)
    dba.execute(PLANT.format(envelope))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        emp.execute("INSERT INTO own VALUES (2, 1)")
    attack.attempt("an envelope in a client's session", stolen(stack, schema))


def test_older_copy_of_used_tickets(stack, emp, schema, attack):
    """The audit log, which the freshness counter guards, also records the use."""
    file = stack.data.parent / "keeper" / "data" / "used-tickets"
    state, _ = attempt(stack, schema, "row", stack.ticket("app"))
    assert state is None
    older = file.read_bytes()
    ticket = stack.ticket("app")
    state, _ = attempt(stack, schema, "row", ticket)
    assert state is None
    emp.execute("UPDATE emp SET pay = 100 WHERE id = 2")
    # The WAL notes the use, too: nothing of it is read again.
    with stack.connect_dba() as dba:
        dba.execute("SELECT confide.checkpoint()")
    stack.kill_keeper()
    file.write_bytes(older)
    stack.start_keeper()
    with stack.connect_app(options=f"-c search_path={schema}") as app:
        app.execute("SELECT pay FROM emp").fetchall()
    state, got = attempt(stack, schema, "row", ticket)
    attack.attempt("a used restore ticket with an older copy of what the keeper noted", got)
    assert state == "42501"


def test_older_copies_of_all(stack, emp, schema, attack):
    """Older copies of the used tickets and of the audit log, taken since the last checkpoint: the
    keeper does not start with them, because the use was bound to the freshness counter."""
    data = stack.data.parent / "keeper" / "data"
    files = [data / "used-tickets", data / "audit"]
    ticket = stack.ticket("app")
    # So that there is something older of both.
    assert attempt(stack, schema, "row", stack.ticket("app"))[0] is None
    older = [file.read_bytes() for file in files]
    assert attempt(stack, schema, "row", ticket)[0] is None
    emp.execute("UPDATE emp SET pay = 100 WHERE id = 2")
    stack.kill_keeper()
    newest = [file.read_bytes() for file in files]
    sizes = stack.log_sizes()
    try:
        for file, content in zip(files, older, strict=True):
            file.write_bytes(content)
        stack.start_keeper()
        until(lambda: not stack.keeper_runs(), "the keeper does not start")
        said = stack.logged_since(sizes)
    finally:
        attack.attempt("a used restore ticket with older copies of all files", stack.keeper_runs())
        for file, content in zip(files, newest, strict=True):
            file.write_bytes(content)
        stack.start_keeper()
    assert "Put the newest copy of the file back" in said
    with stack.connect_app(options=f"-c search_path={schema}") as app:
        assert app.execute("SELECT pay FROM emp ORDER BY id").fetchall() == [(5200,), (100,)]

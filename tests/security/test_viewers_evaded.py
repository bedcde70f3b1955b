"""An account that may not see a column tries to see it with the help of a superuser: by definitions
of its own that run in the viewers' sessions, by copies of values that PostgreSQL or a ledger table
makes, and by parts of tables with other names.

Mechanism: a principal's standing grants cover only columns that it may see itself; a ledger table's
history, child tables and partitions follow the rules of their table. Right: the mask, or 42501, and
an empty loot. Bug: the value is shown as plaintext to whoever has an account.
"""

import contextlib

import psycopg
import pytest
from results import run

SECRET = "5200"


def quietly(connection, sql):
    """What is planted may fail."""
    with contextlib.suppress(psycopg.Error):
        connection.execute(sql)


@pytest.fixture
def owned(three):
    """A table of ann's, and tables of eve's, who does not see what is in it."""
    with three.stack.connect_dba() as dba:
        dba.execute("DROP TABLE IF EXISTS owned, loot, guesses, found CASCADE")
        dba.execute("CREATE TABLE found (id int)")
        dba.execute("GRANT ALL ON found TO PUBLIC")
    made = "CREATE TABLE owned (id int, pay INT SECRET); GRANT ALL ON owned TO PUBLIC"
    assert three.psql("ann", made) == ""
    assert three.psql("ann", f"INSERT INTO owned VALUES (1, {SECRET})") == ""
    with three.connect("eve") as eve:
        eve.execute("CREATE TABLE loot (id int, pay enc_int4)")
        eve.execute("GRANT ALL ON loot TO PUBLIC")
        eve.execute("CREATE TABLE guesses (pay enc_int4, plain int)")
        eve.execute("GRANT ALL ON guesses TO PUBLIC")
        eve.execute("INSERT INTO guesses SELECT g, g FROM generate_series(5190, 5210) g")
    yield three
    three.psql("ann", "DROP TABLE owned")


COPY = "INSERT INTO loot SELECT id, pay FROM owned"
GUESS = "INSERT INTO found SELECT g.plain FROM owned o, guesses g WHERE o.pay = g.pay"
STANDS = {
    "a function's body": "CREATE OR REPLACE FUNCTION helper() RETURNS void LANGUAGE plpgsql AS "
    "$$BEGIN {copy}; {guess}; END$$",
    "a view": "CREATE OR REPLACE VIEW helping AS SELECT o.id, o.pay, g.pay AS guess, l.pay AS loot "
    "FROM owned o, guesses g, loot l WHERE o.pay = g.pay",
    "a rule": "CREATE OR REPLACE RULE helping AS ON INSERT TO guesses DO ALSO {copy}",
}


@pytest.mark.parametrize("name", STANDS)
def test_definitions_of_others(owned, name):
    with owned.connect("eve") as eve:
        quietly(eve, STANDS[name].format(copy=COPY, guess=GUESS))
    with owned.stack.connect_dba() as dba, owned.connect("ann") as ann:
        for n, body in enumerate([COPY, GUESS]):
            dba.execute(
                f"CREATE OR REPLACE FUNCTION take{n}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$BEGIN BEGIN {body}; EXCEPTION WHEN OTHERS THEN NULL; END; RETURN NEW; END$$"
            )
            dba.execute(
                f"CREATE TRIGGER take{n} BEFORE INSERT ON owned "
                f"FOR EACH ROW EXECUTE FUNCTION take{n}()"
            )
        run(ann, "SELECT id, pay FROM owned WHERE pay > 1")
        assert run(ann, "INSERT INTO owned VALUES (2, 7)").sqlstate is None
        assert dba.execute("SELECT id FROM found").fetchall() == []
        dba.execute("DROP VIEW IF EXISTS helping; DROP RULE IF EXISTS helping ON guesses")
    with owned.connect("eve") as eve:
        assert SECRET not in str(run(eve, "SELECT pay FROM loot").rows)


def test_history_of_a_ledger(three):
    """Replaced values of a column with an owner."""
    with three.stack.connect_dba() as dba:
        dba.execute("DROP TABLE IF EXISTS logged CASCADE")
    made = "CREATE TABLE logged (id int PRIMARY KEY, pay INT SECRET) WITH (confide.ledger = on)"
    assert three.psql("ann", made) == ""
    with three.connect("ann") as ann, three.connect("eve") as eve:
        ann.execute("GRANT ALL ON logged, logged_history, logged_ledger TO PUBLIC")
        ann.execute(f"INSERT INTO logged VALUES (1, {SECRET})")
        ann.execute("UPDATE logged SET pay = 7")
        for table in "logged_history", "logged_ledger", "logged":
            shown = run(eve, f"SELECT pay FROM {table}")
            assert SECRET not in str(shown.rows), table
            assert run(eve, f"SELECT id FROM {table} WHERE pay > 100").sqlstate == "42501"
        assert (SECRET,) in run(ann, "SELECT pay FROM logged_ledger").rows


def test_history_of_no_ledger(owned):
    """A superuser's table that is called as the history would be; nobody else can claim it."""
    with owned.connect("eve") as eve:
        claimed = run(eve, "CREATE TABLE owned_history (id int, pay INT SECRET)")
        assert claimed.sqlstate == "42501"
    assert "42501" in owned.psql("boss", "GRANT OWNER public.owned_history.pay TO eve")
    with owned.stack.connect_dba() as dba, owned.connect("ann") as ann:
        dba.execute("DROP TABLE IF EXISTS owned_history")
        dba.execute("CREATE TABLE owned_history (id int, pay enc_int4)")
        dba.execute("GRANT ALL ON owned_history TO PUBLIC")
        dba.execute(
            "CREATE OR REPLACE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
            "BEGIN INSERT INTO owned_history SELECT id, pay FROM owned; "
            "EXCEPTION WHEN OTHERS THEN NULL; END; RETURN NEW; END$$"
        )
        dba.execute(
            "CREATE TRIGGER take BEFORE INSERT ON owned FOR EACH ROW EXECUTE FUNCTION take()"
        )
        run(ann, "INSERT INTO owned VALUES (2, 7)")
    with owned.connect("eve") as eve:
        assert SECRET not in str(run(eve, "SELECT pay FROM owned_history").rows)
        assert run(eve, "SELECT id FROM owned_history WHERE pay > 1").sqlstate in (None, "42501")
        assert run(eve, f"SELECT id FROM owned_history WHERE pay = {SECRET}").rows in ([], None)
    with owned.stack.connect_dba() as dba:
        dba.execute("DROP TABLE owned_history")


PARTS = {
    "partition": (
        "CREATE TABLE {whole} (id int, pay INT SECRET) PARTITION BY RANGE (id)",
        "CREATE TABLE {part} PARTITION OF {whole} FOR VALUES FROM (0) TO (10)",
    ),
    "child": (
        "CREATE TABLE {whole} (id int, pay INT SECRET)",
        "CREATE TABLE {part} () INHERITS ({whole})",
    ),
    "attached": (
        "CREATE TABLE {whole} (id int, pay INT SECRET) PARTITION BY RANGE (id)",
        "CREATE TABLE {part} (id int, pay enc_int4); "
        "ALTER TABLE {whole} ATTACH PARTITION {part} FOR VALUES FROM (0) TO (10)",
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(three, name):
    """Values that lie in a child or a partition."""
    # A name that had an owner keeps its rules.
    whole, part = f"whole_{name}", f"part_{name}"
    with three.stack.connect_dba() as dba:
        dba.execute(f"DROP TABLE IF EXISTS {whole}, {part} CASCADE")
    for sql in PARTS[name]:
        assert three.psql("ann", sql.format(whole=whole, part=part)) == ""
    with three.connect("ann") as ann, three.connect("eve") as eve:
        ann.execute(f"GRANT ALL ON {whole}, {part} TO PUBLIC")
        target = part if name == "child" else whole
        ann.execute(f"INSERT INTO {target} VALUES (1, {SECRET})")
        assert run(ann, f"SELECT pay FROM {whole} WHERE pay > 1").rows == [(SECRET,)]
        for table in whole, part:
            assert run(eve, f"SELECT pay FROM {table}").rows == [("0",)], table
            assert run(eve, f"SELECT id FROM {table} WHERE pay > 1").sqlstate == "42501"
        assert run(ann, f"GRANT VIEWER ON public.{whole}.pay TO eve").sqlstate is None
        assert run(eve, f"SELECT pay FROM {whole}").rows == [(SECRET,)]
        ann.execute(f"DROP TABLE {whole} CASCADE")


def test_tickets_of_others(owned):
    """A restore ticket of a client that does not see the column, for a column that it does see."""
    state = owned.stack.data.parent
    wide = ["app", "--other-columns", "--uses", "0"]
    ticket = owned.stack.ticket(*wide, key=state / "proxy" / "eve.key")
    hers = owned.stack.ticket(*wide, key=state / "proxy" / "ann.key")
    with owned.stack.connect_dba() as dba, owned.connect("eve") as eve:
        (envelope,) = dba.execute("SELECT pay FROM owned").fetchone()
        dba.execute(f"SET confide.restore_ticket = '{ticket}'")
        taken = run(dba, f"INSERT INTO loot VALUES (1, '{envelope}')")
        assert SECRET not in str(run(eve, "SELECT pay FROM loot").rows)
        assert taken.sqlstate == "42501"
        # Who sees the column may say so.
        dba.execute(f"SET confide.restore_ticket = '{hers}'")
        assert run(dba, f"INSERT INTO loot VALUES (1, '{envelope}')").sqlstate is None

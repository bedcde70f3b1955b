"""A subscription imports rows with a restore ticket of the subscriber's owner, and maintains
indexes on protected keys. Right: without a ticket the first row is refused. Bug: whoever can
publish fills any column with values that he cannot read.
"""

import psycopg
import pytest
from stack import POSTGRES, ROOT, Stack
from waiting import until


@pytest.fixture(scope="module")
def logical(stack):
    made = Stack(
        ROOT / ".run" / f"{stack.run.name}-logical",
        POSTGRES + "wal_level = logical\nwal_retrieve_retry_interval = 100ms\n",
    )
    made.up()
    with made.connect_dba() as dba:
        dba.execute("CREATE DATABASE copy OWNER app")
    yield made
    made.down("--remove")


TABLE = "CREATE TABLE emp (id int PRIMARY KEY, name enc_text UNIQUE, pay enc_numeric(10, 2))"


def other(url):
    return url.rsplit("/", 1)[0] + "/copy"


def rows(url):
    with psycopg.connect(other(url), autocommit=True) as app:
        return app.execute("SELECT id, name, pay FROM emp ORDER BY id").fetchall()


def waited_for(what, wanted):
    until(lambda: what() == wanted, wanted)


def test_subscription(logical):
    with logical.connect_app() as app, logical.connect_dba() as dba:
        app.execute(TABLE)
        app.execute("INSERT INTO emp VALUES (1, 'Kim', 5200), (2, 'Ann', 100.5)")
        dba.execute("CREATE PUBLICATION emp FOR TABLE emp")
        dba.execute("SELECT pg_create_logical_replication_slot('emp', 'pgoutput')")
        with psycopg.connect(other(logical.dba_url), autocommit=True) as target:
            target.execute("CREATE EXTENSION confide")
            with psycopg.connect(other(logical.app_url), autocommit=True) as owner:
                owner.execute(TABLE)
            target.execute(
                f"CREATE SUBSCRIPTION emp CONNECTION '{logical.dba_url}' PUBLICATION emp "
                "WITH (create_slot = false, slot_name = 'emp', copy_data = true)"
            )
            sizes = logical.log_sizes()
            waited_for(lambda: "no restore ticket" in logical.logged_since(sizes), True)
            assert rows(logical.app_url) == []
            ticket = logical.ticket("copy", "--uses", "0", "--place", "public.emp")
            target.execute(f"ALTER DATABASE copy SET confide.restore_ticket = '{ticket}'")
            waited_for(lambda: len(rows(logical.app_url)), 2)
            app.execute("UPDATE emp SET pay = pay + 1 WHERE name = 'Kim'")
            app.execute("INSERT INTO emp VALUES (3, 'Zoe', 7)")
            app.execute("DELETE FROM emp WHERE id = 2")
            waited_for(
                lambda: [str(r) for r in rows(logical.app_url)],
                ["(1, 'Kim', Decimal('5201.00'))", "(3, 'Zoe', Decimal('7.00'))"],
            )
            target.execute("ALTER SUBSCRIPTION emp DISABLE")
            target.execute("ALTER SUBSCRIPTION emp SET (slot_name = NONE)")
            target.execute("DROP SUBSCRIPTION emp")
        # The publisher's end of the connection ends after the subscriber's.
        active = "SELECT active FROM pg_replication_slots WHERE slot_name = 'emp'"
        waited_for(lambda: dba.execute(active).fetchone(), (False,))
        dba.execute("SELECT pg_drop_replication_slot('emp')")

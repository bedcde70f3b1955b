"""A dump of a ledger table, restored elsewhere. Right: definitions without an error, the current
rows with the restoring client as author, and the history as restored versions, with a ticket. Bug:
ALTER TABLE … OWNER in the dump creates the history before the dump does, or restored versions look
like ones that were written here."""

import subprocess

import psycopg
import pytest
from dumps import another_database, restored, tool
from stack import PG_BIN


@pytest.fixture
def dump(stack, account, schema):
    def dump(*more):
        return tool("pg_dump", "-d", stack.dba_url, "-n", schema, *more)

    return dump


def restore(stack, address, text: bytes, *more: str):
    ticket = stack.ticket("restored", "--other-columns")
    start = f"SET confide.restore_ticket = '{ticket}';\n".encode()
    return subprocess.run(
        [PG_BIN / "psql", "-X", "-q", "-d", address, *more],
        input=start + text,
        capture_output=True,
    )


def test_definitions_and_current_rows(stack, dump, schema, auditor):
    text = dump("--exclude-table-data", "*.*_history")
    with another_database(stack) as addresses:
        done = restore(stack, addresses["proxy"], text, "-1", "-v", "ON_ERROR_STOP=1")
        assert done.returncode == 0, done.stderr.decode()
        with restored(addresses, schema) as app:
            auditor.app = app
            assert auditor.findings("account") == []
            query = "SELECT id, owner::text, balance::text FROM {} ORDER BY id, sn"
            rows = [(1, "Ann", "11.00"), (2, "Bob", "21.00")]
            assert app.execute(query.format("account")).fetchall() == rows
            app.execute("UPDATE account SET balance = 5 WHERE id = 1")
            app.execute("ALTER TABLE account ADD COLUMN extra int")
            app.execute("DELETE FROM account WHERE id = 2")
            rows.insert(1, (1, "Ann", "5.00"))
            assert app.execute(query.format("account_ledger")).fetchall() == rows
            assert app.execute("SELECT id FROM confide.as_of(account, now())").fetchall() == [(1,)]
            assert auditor.findings("account") == []


def test_history(stack, dump, schema, auditor):
    """With a ticket versions of the history come, under new numbers, with author and times as the
    dump says; the report tells how many. What is edited afterwards is found."""
    text = dump()
    with another_database(stack) as addresses:
        done = restore(stack, addresses["proxy"], text, "-1", "-v", "ON_ERROR_STOP=1")
        assert done.returncode == 0, done.stderr.decode()
        with restored(addresses, schema) as app:
            auditor.app = app
            assert auditor.findings("account") == []
            assert "\nversions 5\n" in auditor.note("account", "n")
            assert "\nrestored 3\n" in auditor.note("account", "n")
            query = (
                "SELECT id, owner::text, balance::text, note, valid_from, by, valid_to, ended_by"
                " FROM account_history ORDER BY sn"
            )
            with stack.connect_app() as source:
                source.execute(f'SET search_path = "{schema}"')
                assert app.execute(query).fetchall() == source.execute(query).fetchall()
            past = [row[0] for row in app.execute("SELECT sn FROM account_history ORDER BY sn")]
            app.execute("UPDATE account SET note = 'z' WHERE id = 1")
            numbers = [row[0] for row in app.execute("SELECT sn FROM account_ledger")]
            assert len(set(numbers)) == len(numbers) == 6
            assert app.execute(f"DELETE FROM account WHERE sn = {past[2]}").rowcount == 1
            assert auditor.findings("account") == []
            edit_history(addresses, schema, past)
            assert auditor.findings("account") == [(number, "altered") for number in past[:2]]


def edit_history(addresses, schema, numbers):
    """A superuser changes the author of a restored version, and who ended another."""
    with psycopg.connect(addresses["straight"], autocommit=True) as dba:
        dba.execute(f'SET search_path = "{schema}"')
        kind = "UPDATE pg_attribute SET atttypid = '{}'::regtype WHERE attname = 'sn'"
        kind += " AND attrelid = 'account_history'::regclass"
        dba.execute(kind.format("int8"))
        dba.execute(f"UPDATE account_history SET by = 'x' WHERE sn = {numbers[0]}")
        dba.execute(f"UPDATE account_history SET ended_by = 'x' WHERE sn = {numbers[1]}")
        dba.execute(kind.format("ledger_past_sn"))


def test_without_a_ticket(stack, app, schema, auditor):
    """Rows of a history are refused: nobody makes a past by hand."""
    app.execute("CREATE TABLE paper (id int) WITH (confide.ledger = on)")
    app.execute("INSERT INTO paper VALUES (1)")
    app.execute("DELETE FROM paper")
    text = tool("pg_dump", "-d", stack.dba_url, "-n", schema)
    with another_database(stack) as addresses:
        done = subprocess.run(
            [PG_BIN / "psql", "-X", "-q", "-d", addresses["proxy"]],
            input=text,
            capture_output=True,
        )
        said = done.stderr.decode()
        assert said.count("ERROR") == 1, said
        assert 'history "paper_history" of a ledger table cannot be changed' in said
        with restored(addresses, schema) as other:
            auditor.app = other
            assert other.execute("SELECT count(*) FROM paper_ledger").fetchone() == (0,)
            assert auditor.findings("paper") == []

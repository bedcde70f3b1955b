"""A dump of a ledger table, restored elsewhere: definitions without an error, the current rows in
the name of whoever restores them; rows of the history are refused. Bug: ALTER TABLE … OWNER in the
dump makes the history before the dump does, or forged versions come in by way of a dump."""

import subprocess

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
        timeout=300,
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


def test_rows_of_the_history_are_refused(stack, dump, schema, auditor):
    text = dump()
    with another_database(stack) as addresses:
        done = restore(stack, addresses["proxy"], text)
        said = done.stderr.decode()
        assert said.count("ERROR") == 1, said
        assert 'history "account_history" of a ledger table cannot be changed' in said
        with restored(addresses, schema) as app:
            auditor.app = app
            assert auditor.findings("account") == []
            counts = [
                app.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("account", "account_history", "account_ledger")
            ]
            assert counts == [2, 0, 2]

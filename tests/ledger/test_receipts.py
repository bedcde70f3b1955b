"""Receipts: what a transaction has written to ledger tables, signed by the keeper.

Right: whoever has one can prove offline that the version was written, and a table without it is
detected, even if the database says that the transaction's outcome is unknown. Bug: a receipt for
something that was rolled back, or a table that loses what was written, but verifies."""

import re
import subprocess
from pathlib import Path

import psycopg
import pytest
from stack import PG_BIN


@pytest.fixture
def receipt(account, auditor, tmp_path):
    """Asks for a receipt; the file, and what `confide verify receipt` says."""

    def receipt(nonce="n", said_nonce="n"):
        text = account.execute(f"SELECT confide.ledger_receipt('{nonce}')").fetchone()[0]
        file = tmp_path / "receipt"
        file.write_text(text)
        done = auditor.run("verify", "receipt", file, "--key", auditor.key, "--nonce", said_nonce)
        return file, done.returncode, done.stdout + done.stderr

    return receipt


def test_what_was_written(account, receipt, auditor):
    account.execute("CREATE TABLE entry (n int, v enc_text) WITH (confide.ledger = on)")
    with account.transaction():
        (written,) = account.execute(
            "INSERT INTO account VALUES (7, 'Gil', 7, NULL) RETURNING sn"
        ).fetchone()
        (deleted,) = account.execute("DELETE FROM account WHERE id = 1 RETURNING sn").fetchone()
        (other,) = account.execute("INSERT INTO entry VALUES (1, 'x') RETURNING sn").fetchone()
    file, code, said = receipt()
    assert code == 0, said
    found = {line for line in said.splitlines() if line.startswith("version ")}
    assert found == {
        f"version {written}: written",
        f"version {deleted}: deleted",
        f"version {other}: written",
    }
    # Once, with the nonce that was sent, as it was signed.
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        receipt()
    account.execute("UPDATE account SET note = 'z' WHERE id = 7")
    assert receipt(said_nonce="m")[1] == 1
    text = file.read_text()
    file.write_text(text.replace("principal app", "principal bob"))
    done = auditor.run("verify", "receipt", file, "--key", auditor.key, "--nonce", "n")
    assert done.returncode == 1


def test_nothing_to_show(account, receipt):
    """Rolled back, read only, or not a ledger."""
    receipt()  # for the fixture's last statement
    with pytest.raises(psycopg.errors.DivisionByZero), account.transaction():
        account.execute("DELETE FROM account")
        account.execute("SELECT 1 / 0")
    account.execute("SELECT * FROM account")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        receipt()


def test_a_table_goes_on_from_it(account, receipt, auditor):
    """A report that was asked for with the receipt's size shows that the log goes on from it."""
    account.execute("UPDATE account SET note = 'kept' WHERE id = 2")
    file, code, said = receipt()
    assert code == 0, said
    size = next(int(s.split()[1]) for s in file.read_text().splitlines() if s.startswith("size "))
    account.execute("UPDATE account SET note = 'later' WHERE id = 2")
    code, said = auditor.verify(
        auditor.note("account", "n", size), "--nonce", "n", "--receipt", file
    )
    assert (code, "goes on from the receipt" in said) == (0, True), said
    code, said = auditor.verify(auditor.note("account", "n"), "--nonce", "n", "--receipt", file)
    assert code == 1, said
    account.execute("CREATE TABLE other (id int) WITH (confide.ledger = on)")
    account.execute("INSERT INTO other VALUES (1)")
    code, said = auditor.verify(auditor.note("other", "n"), "--nonce", "n", "--receipt", file)
    assert (code, "says nothing of log" in said) == (1, True), said


def commit_of(stack, start: str) -> tuple[Path, int]:
    """Where the WAL has the commit of the transaction that has made entries since."""
    command = [PG_BIN / "pg_waldump", "--path", stack.data / "pg_wal", "--start", start]
    said = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    ours = [re.search(r"tx: +([1-9][0-9]*)", line) for line in said if "custom" in line]
    (transaction,) = {found.group(1) for found in ours if found}
    commits = [line for line in said if re.search(rf"tx: +{transaction},.* COMMIT", line)]
    lsn = re.search(r"lsn: ([0-9A-F/]+)", commits[-1]).group(1)
    with stack.connect_dba() as dba:
        query = "SELECT file_name, file_offset FROM pg_walfile_name_offset(%s)"
        name, offset = dba.execute(query, (lsn,)).fetchone()
    return stack.data / "pg_wal" / name, offset


@pytest.mark.parametrize("number", ["lost", "given again"])
def test_called_unknown(stack, account, receipt, auditor, schema, number):
    """The database commits, gives the receipt, is killed with the keeper, and the end of its WAL is
    removed: nobody says how the transaction ended, so without the receipt it is a note. Also if
    another row gets the number, as after a crash that has lost the transaction."""
    with stack.connect_dba() as dba:
        start = dba.execute("SELECT pg_current_wal_insert_lsn()").fetchone()[0]
    sql = "INSERT INTO account VALUES (8, 'Hal', 8, NULL) RETURNING sn"
    (sn,) = account.execute(sql).fetchone()
    file, code, said = receipt()
    assert code == 0, said
    size = next(int(s.split()[1]) for s in file.read_text().splitlines() if s.startswith("size "))
    segment, offset = commit_of(stack, start)
    stack.kill_keeper()
    stack.kill_postgres()
    with segment.open("r+b") as file_of_wal:
        file_of_wal.seek(offset)
        file_of_wal.write(bytes(24))
    stack.up()
    with stack.connect_app() as app:
        app.execute(f'SET search_path = "{schema}"')
        if number == "given again":
            with stack.connect_dba() as dba:
                dba.execute("SELECT setval('confide.ledger_numbers', %s, false)", (sn,))
            assert app.execute(sql).fetchone() == (sn,)
        auditor.app = app
        note = auditor.note("account", "n", size)
        code, said = auditor.verify(note, "--nonce", "n")
        assert (code, "nobody saw whether" in said) == (0, True), said
        code, said = auditor.verify(note, "--nonce", "n", "--receipt", file)
        assert (code, "says that its transaction committed" in said) == (1, True), said

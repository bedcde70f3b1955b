"""Ledger tables: a fixture that gets the keeper's report about a table and verifies it."""

import secrets
import subprocess

import pytest


class Auditor:
    """Asks for reports through the proxy, and verifies them offline, as `confide verify` does."""

    def __init__(self, stack, app, directory):
        self.app, self.directory = app, directory
        self.binary = stack.data.parent / "bin" / "confide"
        key = stack.data.parent / "keeper" / "keeper.key"
        done = self.run("pubkey", "--signing", key)
        self.key = done.stdout.strip()

    def run(self, *arguments):
        return subprocess.run([self.binary, *arguments], capture_output=True, text=True)

    def note(self, table: str, nonce: str, old: int = 0) -> str:
        query = f"SELECT confide.ledger_report('{table}', '{nonce}', {old})"
        return self.app.execute(query).fetchone()[0]

    def verify(self, note: str, *arguments) -> tuple[int, str]:
        file = self.directory / "report"
        file.write_text(note)
        done = self.run("verify", "report", file, "--key", self.key, *arguments)
        return done.returncode, done.stdout + done.stderr

    def findings(self, table: str) -> list[tuple[int, str]]:
        """What is wrong with a table: numbers of versions, and words."""
        nonce = secrets.token_hex(8)
        note = self.note(table, nonce)
        code, said = self.verify(note, "--nonce", nonce)
        lines = [line.split() for line in note.splitlines() if line.startswith("finding ")]
        found = [(int(sn), word) for _, sn, word in lines]
        assert code == (1 if found else 0), said
        return found


@pytest.fixture
def auditor(stack, app, tmp_path):
    return Auditor(stack, app, tmp_path)


@pytest.fixture
def account(app):
    """A ledger table with plain and protected columns and three versions in its history."""
    app.execute(
        "CREATE TABLE account (id int PRIMARY KEY, owner enc_text, balance enc_numeric(12,2),"
        " note text) WITH (confide.ledger = on)"
    )
    app.execute("INSERT INTO account VALUES (1, 'Ann', 10, 'a'), (2, 'Bob', 20, NULL)")
    app.execute("INSERT INTO account VALUES (3, 'Cem', 30, 'c')")
    app.execute("UPDATE account SET balance = balance + 1 WHERE id < 3")
    app.execute("DELETE FROM account WHERE id = 3")
    return app


@pytest.fixture
def deed(stack):
    """A ledger table that copies of the cluster have, too. The test may stop the stack."""
    with stack.connect_app() as app:
        app.execute("DROP SCHEMA IF EXISTS place CASCADE")
        app.execute("CREATE SCHEMA place")
        app.execute("CREATE TABLE place.deed (id int, v enc_text) WITH (confide.ledger = on)")
        app.execute("INSERT INTO place.deed VALUES (1, 'a'), (2, 'b')")
        yield app
    with stack.connect_app() as app:
        app.execute("DROP SCHEMA place CASCADE")

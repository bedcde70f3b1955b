"""`confide verify table`, the command: asks through the proxy, verifies offline, keeps a digest.

Right: exit code 0 and a new digest if the table is as it was written; 1, the versions' numbers and
the old digest if not. Bug: a digest that is replaced although something was found."""

import pytest
from ledgers import Off
from stack import PG_BIN


@pytest.fixture
def verify(stack, app, auditor, schema):
    app.execute("CREATE TABLE deed (id int, what text, who text) WITH (confide.ledger = on)")
    app.execute("INSERT INTO deed SELECT n, 'what ' || n, 'who' FROM generate_series(1, 5) n")
    app.execute("UPDATE deed SET what = 'changed' WHERE id <= 2")

    def verify(*arguments, table="deed"):
        at = ("--dbname", stack.app_url, "--bindir", PG_BIN, "--key", auditor.key)
        done = auditor.run("verify", "table", f'"{schema}".{table}', *at, *arguments)
        return done.returncode, done.stdout + done.stderr

    return verify


def test_digest(app, dba, verify, tmp_path):
    """It is made, replaced while all is well, and left as it is when something is wrong."""
    digest = tmp_path / "deed.digest"
    code, said = verify("--digest", digest)
    assert (code, "7 row versions are as they were written" in said) == (0, True), said
    first = digest.read_text()
    app.execute("DELETE FROM deed WHERE id = 5")
    code, said = verify("--digest", digest)
    assert (code, "goes on from the checkpoint" in said) == (0, True), said
    second = digest.read_text()
    assert second != first
    code, said = verify("--digest", digest, "--new")
    assert (code, "were not compared again" in said) == (0, True), said
    third = digest.read_text()
    (number,) = app.execute("SELECT sn FROM deed WHERE id = 3").fetchone()
    with Off(dba) as off:
        off.execute("UPDATE deed SET what = 'never' WHERE id = 3")
    app.execute("INSERT INTO deed VALUES (6, 'later', 'x')")
    code, said = verify("--digest", digest)
    assert (code, f"version {number}: altered" in said) == (1, True), said
    assert digest.read_text() == third


def test_refused(app, auditor, verify, tmp_path):
    """Another keeper's key, a table that is no ledger, one that is not there."""
    app.execute("CREATE TABLE plain (id int)")
    assert verify(table="plain")[0] == 1
    assert verify(table="nothing")[0] == 1
    auditor.run("keygen", "keeper", "--out", tmp_path / "other.key")
    auditor.key = auditor.run("pubkey", "--signing", tmp_path / "other.key").stdout.strip()
    code, said = verify()
    assert (code, "verified" in said) == (1, False), said


def test_progress(app, verify):
    """A walk says how far it is. Bug: nobody knows whether an hour's walk goes on."""
    app.execute("CREATE TABLE long (id int) WITH (confide.ledger = on)")
    app.execute("INSERT INTO long SELECT generate_series(1, 100001)")
    code, said = verify(table="long")
    assert code == 0, said
    assert '100000 row versions of "long" read' in said
    assert "100001 row versions are as they were written" in said

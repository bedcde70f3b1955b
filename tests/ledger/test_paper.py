"""Table 1 of SecuDB, its rows about tamper resistance, through psql. The first two are written as
in the paper; DELETE … WHERE sn deletes current rows here, and erasing and hiding are calls of
confide.ledger_erase. Bug: a statement of the table that psql cannot send."""

import subprocess

import pytest
from stack import PG_BIN


@pytest.fixture
def psql(stack, app, schema):
    def psql(statement: str) -> str:
        done = subprocess.run(
            [PG_BIN / "psql", "-X", "-A", "-t", "-d", stack.app_url, "-c", statement],
            env={"PGOPTIONS": f"-c search_path={schema}", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return psql


def test_tamper_resistance(psql, auditor, tmp_path):
    assert psql("CREATE TABLE T(c1 INT) IMMUTABLE YES WITH TYPE TEE;") == "CREATE TABLE"
    psql("INSERT INTO T SELECT generate_series(1, 5)")
    psql("UPDATE T SET c1 = c1 + 10")
    file = tmp_path / "result.json"
    file.write_text(psql("SELECT * FROM T WITH SIGNATURE;"))
    done = auditor.run("verify", "result", file, "--key", auditor.key)
    assert done.returncode == 0, done.stderr
    assert "column c1 integer" in done.stdout
    assert "from row versions of" in done.stdout
    numbers = [int(line) for line in psql("SELECT sn FROM T_history ORDER BY sn").split()]
    assert psql(f"SELECT confide.ledger_erase('T', {numbers[1]}, true)") == "2"
    assert psql(f"SELECT confide.ledger_erase('T', {numbers[3]})") == "1"
    left = [int(line) for line in psql("SELECT sn FROM T_history ORDER BY sn").split()]
    assert left == [numbers[2], numbers[4]]
    audit = psql("SELECT operation, number, rows, by FROM T_audit ORDER BY sn").splitlines()
    assert audit == [f"erase through|{numbers[1]}|2|app", f"erase|{numbers[3]}|1|app"]
    for table in "t", "t_audit":
        assert auditor.findings(table) == []

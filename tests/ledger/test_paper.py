"""The four rows about tamper resistance in SecuDB's table 1, through psql, each as written in the
paper, with a number for the question mark. Bug: a statement that psql cannot send, or that does
something else: a DELETE by number that ends current rows, or erases without a record in the audit.
"""

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
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return psql


def test_tamper_resistance(psql, auditor, tmp_path):
    # Define data-oriented tamper-resistant table.
    assert psql("CREATE TABLE T(c1 INT) IMMUTABLE YES WITH TYPE TEE;") == "CREATE TABLE"
    assert psql("INSERT INTO T SELECT generate_series(1, 5);") == "INSERT 0 5"
    assert psql("UPDATE T SET c1 = c1 + 10;") == "UPDATE 5"
    # Verify temporal data or query resultset; the paper leaves the columns out.
    file = tmp_path / "result.json"
    file.write_text(psql("SELECT FROM T WITH SIGNATURE;"))
    done = auditor.run("verify", "result", file, "--key", auditor.key)
    assert done.returncode == 0, done.stderr
    for said in "rows: 5", "column c1 integer", "from row versions of":
        assert said in done.stdout
    numbers = [int(line) for line in psql("SELECT sn FROM T_history ORDER BY sn").split()]
    # Erase obsolete data in advanced temporal table.
    assert psql(f"DELETE FROM T WHERE sn <= {numbers[1]};") == "DELETE 2"
    # Hide violated data in advanced temporal table.
    assert psql(f"DELETE FROM T WHERE sn = {numbers[3]};") == "DELETE 1"
    left = [int(line) for line in psql("SELECT sn FROM T_history ORDER BY sn").split()]
    assert left == [numbers[2], numbers[4]]
    assert psql("SELECT c1 FROM T ORDER BY c1").split() == ["11", "12", "13", "14", "15"]
    # All these operations will be recorded in an audit table.
    audit = psql("SELECT operation, number, rows, by FROM T_audit ORDER BY sn").splitlines()
    assert audit == [f"erase through|{numbers[1]}|2|app", f"erase|{numbers[3]}|1|app"]
    for table in "t", "t_audit":
        assert auditor.findings(table) == []
    assert "erased 3" in auditor.note("t", "n")

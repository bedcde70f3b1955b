"""psql through the proxy, and the demo that uses it."""

import subprocess

import pytest
from stack import PG_BIN, ROOT, RUN


def psql(url, *args, check=True, stdin=None):
    done = subprocess.run(
        [PG_BIN / "psql", "-X", "-d", url, "-v", "ON_ERROR_STOP=1", *args],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


def test_queries(stack, expected):
    for query, outcome in expected:
        lines = psql(stack.app_url, "-At", "-F", "\t", "-c", query).stdout.splitlines()
        assert lines == ["\t".join(v or "" for v in row) for row in outcome.rows]


def test_file(stack, payroll):
    output = psql(stack.app_url, "-f", str(ROOT / "demo" / "queries.sql")).stdout
    assert "cfd1." not in output
    assert "Research" in output


def test_describe(stack, payroll):
    output = psql(stack.app_url, "-c", r"\d payroll.employee").stdout
    assert "enc_numeric(10,2)" in output
    assert "employee_salary" in output
    assert psql(stack.app_url, "-c", r"\d+ payroll.employee", "-c", r"\dt payroll.*").stdout
    assert "numeric" in psql(stack.app_url, stdin=r"SELECT 1.5 AS x \gdesc").stdout


def test_variables_and_crosstab(stack, payroll):
    query = "SELECT name FROM payroll.employee WHERE name LIKE :'part' ORDER BY id LIMIT 1;"
    assert "Wei" in psql(stack.app_url, "-v", "part=Wei%", stdin=query).stdout


def test_backslash_copy(stack, payroll, tmp_path):
    file = tmp_path / "out.csv"
    psql(stack.app_url, "-c", rf"\copy payroll.employee TO '{file}' WITH (FORMAT csv)")
    text = file.read_text()
    assert len(text.splitlines()) == 200
    assert "cfd1." not in text
    table = "payroll.again"
    psql(
        stack.app_url,
        *("-c", f"DROP TABLE IF EXISTS {table}"),
        *("-c", f"CREATE TABLE {table} (LIKE payroll.employee)"),
        *("-c", rf"\copy {table} FROM '{file}' WITH (FORMAT csv)"),
    )
    difference = (
        f"SELECT count(*) FROM (SELECT * FROM {table} EXCEPT SELECT * FROM payroll.employee) d"
    )
    assert psql(stack.app_url, "-At", "-c", difference).stdout == "0\n"


def test_error_position(stack, payroll):
    """The caret is under the word that the user wrote, though the proxy changed the text."""
    query = "SELECT name FROM payroll.employee WHERE name = 'Wei' AND salry > 3"
    error = psql(stack.app_url, "-c", query, check=False).stderr
    line, caret = next(
        (a, b)
        for a, b in zip(error.splitlines(), error.splitlines()[1:], strict=False)
        if a.startswith("LINE 1")
    )
    assert line[caret.index("^") :].startswith("salry")


def test_superuser_sees_envelopes(stack, payroll):
    output = psql(stack.dba_url, "-At", "-c", "SELECT name, salary FROM payroll.employee").stdout
    for line in output.splitlines():
        assert all(field.startswith("cfd1.") for field in line.split("|"))


@pytest.mark.parametrize("time", [1, 2])
def test_demo(stack, time):
    """`make demo` after the stack is up: shows both sides; a second time, too."""
    done = subprocess.run(
        [ROOT / "demo" / "run"],
        env={**stack.environment, "CONFIDE_RUN": str(RUN)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Wei Virtanen" in done.stdout
    assert "cfd1." in done.stdout
    assert "ERROR" in done.stdout  # the superuser's condition is refused
    assert ("Loading" in done.stdout) == (time == 1) or time == 1

"""The demo's tables, rows and queries."""

import subprocess
import sys

from stack import ROOT

SCHEMA = (ROOT / "demo" / "schema.sql").read_text()
TABLES = ["department", "employee"]


def rows_of(table):
    command = [sys.executable, ROOT / "demo" / "payroll.py", table]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def queries():
    """The demo's queries, without comments."""
    lines = (ROOT / "demo" / "queries.sql").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("--"))
    return [query.strip() for query in text.split(";\n") if query.strip()]

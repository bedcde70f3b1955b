"""An application's database is migrated by the steps in docs/migrating.md; the application does not
notice.

Mechanism: `clinic/schema.sql` is the database of an application that knows nothing about Confide
(22 tables, triggers, functions, views); `clinic/program.py` is the application, which fills it. One
database stays as it is; in the other, `clinic/move.sql` protects 34 columns through the proxy.
Right: the same operations of users return the same on both, including types and errors, and
protected values are in no table of the server. Bug: a step of the page fails, or the application
sees a difference.
"""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from stack import PG_BIN

HERE = Path(__file__).parent / "clinic"
sys.path.append(str(HERE.parents[1] / "compat"))

from client_programs import databases, difference, drop, run  # noqa: E402
from psycopg.conninfo import conninfo_to_dict  # noqa: E402

PROGRAM = [sys.executable, str(HERE / "program.py")]


def psql(url, file):
    command = [PG_BIN / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", HERE / file, url]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def moved(stack):
    """The addresses of the database that stayed and of the one that was moved."""
    port = int(conninfo_to_dict(stack.app_url)["port"])
    straight, through = databases(stack, port, "clinic")
    # Both are there before anybody has heard of a proxy.
    for url in (straight, straight.replace("clinic_plain", "clinic_protected")):
        psql(url, "schema.sql")
        run(PROGRAM, url, "create", {})
    psql(through, "move.sql")
    yield straight, through
    drop(stack, "clinic")


def test_the_application_does_not_notice(moved):
    plain, protected = (run(PROGRAM, url, "run", {}) for url in moved)
    assert [o["name"] for o in plain] == [o["name"] for o in protected]
    assert len(plain) > 35
    broken = [o for o in plain if ("error" in o) != o["name"].endswith("_error")]
    assert not broken, f"on plain tables: {broken}"
    seen = {a["name"]: difference(a, b) for a, b in zip(plain, protected, strict=True)}
    differs = {name: what for name, what in seen.items() if what}
    assert not differs, "\n".join(f"{name}: {what}" for name, what in differs.items())


PROTECTED = """
SELECT c.relname, a.attname
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relkind = 'r' AND attnum > 0 AND typname LIKE 'enc_%'
"""


def test_nothing_is_left(stack, moved):
    """The superuser finds envelopes in all protected columns, and identifiers in the rows."""
    url = psycopg.conninfo.make_conninfo(stack.dba_url, dbname="clinic_protected")
    with psycopg.connect(url, autocommit=True) as dba:
        columns = dba.execute(PROTECTED).fetchall()
        assert len(columns) == 34
        for table, column in columns:
            for (value,) in dba.execute(f"SELECT {column} FROM {table}").fetchall():
                assert value is None or value.startswith("cfd1."), (table, column)
        bodies = dba.execute(
            "SELECT prosrc FROM pg_proc WHERE proowner = 'app'::regrole"
        ).fetchall()
    assert "canary-note" not in str(bodies)

"""The queries of docs/maintenance.md, by a role that may only monitor, while the application works.

Mechanism: the queries are read from the page. Right: each runs, and none returns a value of a
protected column. Bug: a view needs more privileges than the page says, or shows a literal.
"""

import re
import threading

import psycopg
import pytest
from stack import ROOT
from waiting import until_waits

QUERIES = [
    query.strip()
    for block in re.findall(r"```sql\n(.*?)```", (ROOT / "docs/maintenance.md").read_text(), re.S)
    for query in block.split(";")
    if query.strip()
]
SECRET = "planted s3cret"


def test_page_has_queries():
    assert len(QUERIES) > 12


@pytest.fixture
def busy(app, second, stack):
    """A statement with a protected literal that waits for a lock."""
    app.execute("CREATE TABLE t (id int PRIMARY KEY, name enc_text)")
    app.execute(f"INSERT INTO t VALUES (1, '{SECRET} 1'), (2, '{SECRET} 2')")
    app.execute("BEGIN")
    app.execute("UPDATE t SET id = 3 WHERE id = 1")
    change = f"UPDATE t SET name = '{SECRET} 3' WHERE name = '{SECRET} 1'"
    thread = threading.Thread(target=second.execute, args=[change])
    thread.start()
    until_waits(stack, second, "Lock")
    yield second.info.backend_pid
    app.execute("ROLLBACK")
    thread.join()


@pytest.mark.parametrize("query", QUERIES)
def test_asked_by_a_monitor(role, busy, query):
    with psycopg.connect(role.url, autocommit=True) as monitor:
        rows = monitor.execute(query).fetchall()
    assert "s3cret" not in str(rows)
    if "blocked_by" in query:
        assert any(row[0] == busy for row in rows)
    if "AS started" in query:
        assert any(row[0] == busy and "cfd1." in row[-1] for row in rows)

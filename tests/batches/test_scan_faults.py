"""Interrupts a batched scan: timeout, cancel, a keeper that dies or stops responding, too little
memory. Right: an SQL error in time, and the session continues.

Mechanism: two requests may be in progress when an error leaves the node. Bug: their answers are
used for later requests, the backend waits forever, or it writes to freed memory.
"""

import psycopg
import pytest
from results import run
from waiting import amid, limited, standing_still

ROWS = 12000
# Each row of a has all of b scanned again, with both programs.
LONG = (
    "SELECT count(*) FROM big a, LATERAL (SELECT b.n * a.n AS m FROM big b"
    " WHERE b.n * a.n + b.n > 0 OFFSET 0) x WHERE x.m IS NULL"
)


@pytest.fixture
def big(stack, schema):
    stack.up()
    with stack.connect_app() as connection:
        connection.execute(f'SET search_path = "{schema}"')
        connection.execute("CREATE TABLE big (i int, n enc_numeric(12, 1))")
        with connection.cursor().copy("COPY big FROM STDIN") as copy:
            for i in range(ROWS):
                copy.write_row((i, i + 0.5))
        connection.execute("ANALYZE big")
        plan = "\n".join(r[0] for r in connection.execute("EXPLAIN " + LONG))
        assert "ConfideScan" in plan
        assert "Output Program" in plan
        yield connection
    stack.up()


def usable(connection):
    wanted = [(str(i),) for i in range(ROWS - 3, ROWS)]
    query = f"SELECT i FROM big WHERE n * 2 > {2 * (ROWS - 3)} ORDER BY i"
    outcome = run(connection, query)
    assert outcome.rows == wanted, outcome


def test_statement_timeout(big):
    with limited(big, "400ms"):
        outcome = run(big, LONG)
    assert outcome.sqlstate == "57014"
    usable(big)


def test_many_cancels(big):
    """Wherever it happens to be: in the child, while sending, while waiting. The limit ends with
    the transaction, so that it can only meet the long statement."""
    for attempt in range(12):
        big.execute("BEGIN")
        big.execute(f"SET LOCAL statement_timeout = '{5 + 7 * attempt}ms'")
        assert run(big, LONG).sqlstate == "57014"
        big.execute("ROLLBACK")
        usable(big)


def test_error_in_between(big):
    """A node that is left by an error while its requests are under way, in a transaction that
    goes on, with another scan in the middle of its batches."""
    with big.transaction(), big.cursor(name="c") as cursor:
        cursor.itersize = 2000
        cursor.execute("SELECT i, n * 2 FROM big WHERE n + n > 0 ORDER BY i")
        for part in range(4):
            with pytest.raises(psycopg.errors.DivisionByZero), big.transaction():
                big.execute("SELECT 1 / (i - 9000) FROM big WHERE n * 2 > 1")
            rows = cursor.fetchmany(2000)
            assert rows[0][0] == part * 2000
            assert rows[-1][1] == (part * 2000 + 1999) * 2 + 1
    usable(big)


def test_keeper_stands_still(stack, big):
    with limited(big, "400ms"), standing_still(stack.keeper_pid()):
        outcome = run(big, LONG)
    assert outcome.sqlstate == "57014"
    usable(big)


def test_keeper_dies(stack, big, schema):
    with amid(stack, stack.kill_keeper):
        outcome = run(big, LONG)
    # The proxy sends it once again: 08001 if there is no keeper yet.
    assert outcome.sqlstate in ("08006", "08003", "08001"), outcome
    stack.up()
    with stack.connect_app() as connection:
        connection.execute(f'SET search_path = "{schema}"')
        usable(connection)


def test_abandoned_results(big):
    """Results of batches whose rows nobody fetches are no error and no leak of requests."""
    for _ in range(3):
        with big.transaction(), big.cursor(name="c") as cursor:
            cursor.itersize = 5
            cursor.execute("SELECT i, n * 2 FROM big WHERE n > 1")
            assert len(cursor.fetchmany(5)) == 5
        usable(big)
    with pytest.raises(psycopg.errors.DivisionByZero):
        big.execute("SELECT i, 1 / (n - 7000.5) FROM big WHERE n > 1")
    assert (
        len(big.execute("SELECT i, 1 / (n - 7000.5) FROM big WHERE n > 1 LIMIT 9").fetchall()) == 9
    )
    usable(big)

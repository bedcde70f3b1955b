"""The keeper works while PostgreSQL is still reading.

Mechanism: a batch of many rows is a one-way message that wakes a sleeping keeper. Bug: the message
stays in the ring until there are some kilobytes. Since rows that were loaded together are sent in
runs of a few bytes, this may be at the end of the scan, so nothing overlaps.
"""

import threading
import time

from results import run
from waiting import worked

ROWS = 12_000
LOCK = 4711
SUMS = ", ".join(f"sum(a * {n} + a), max(a - {n})" for n in range(1, 6))
# After the table's rows comes one that is waited for.
BLOCKED = f"""SELECT {SUMS} FROM (
    SELECT a FROM t UNION ALL SELECT a FROM o WHERE pg_advisory_xact_lock_shared({LOCK}) IS NOT NULL
) x"""


def grows(measure, least, seconds=60):
    """What is measured, once it is as much, or after a while."""
    until = time.monotonic() + seconds
    while (found := measure()) < least and time.monotonic() < until:
        time.sleep(0.01)
    return found


def fill(connection):
    connection.execute("CREATE TABLE t (a enc_int4); CREATE TABLE o (a enc_int4)")
    for table, rows in (("t", ROWS), ("o", 1)):
        with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
            for n in range(rows):
                copy.write_row([n])


def test_keeper_works_meanwhile(stack, app, dba):
    fill(app)
    keeper = stack.keeper_pid()
    before = worked(keeper)
    # Waits that are too long to spin: from now on the backend wakes for few messages only.
    for _ in range(10):
        plan = run(app, f"EXPLAIN (ANALYZE) {BLOCKED}")
        assert "ConfideAggregate" in str(plan.rows)
    once = (worked(keeper) - before) // 10
    dba.execute(f"SELECT pg_advisory_lock({LOCK})")
    before = worked(keeper)
    thread = threading.Thread(target=run, args=(app, BLOCKED))
    thread.start()
    try:
        # Two batches of three are with the keeper.
        meanwhile = grows(lambda: worked(keeper) - before, once * 0.4)
    finally:
        dba.execute(f"SELECT pg_advisory_unlock({LOCK})")
        thread.join()
    assert meanwhile > once * 0.4, (meanwhile, once)

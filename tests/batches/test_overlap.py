"""The keeper works while PostgreSQL is still reading.

Mechanism: a batch of many rows is a one-way message that wakes a sleeping keeper. Bug: the message
stays in the ring until there are some kilobytes. Since rows that were loaded together are sent in
runs of a few bytes, this may be at the end of the scan, so nothing overlaps.
"""

import threading
import time
from pathlib import Path

from results import run

ROWS = 12_000
LOCK = 4711
SUMS = ", ".join(f"sum(a * {n} + a), max(a - {n})" for n in range(1, 6))
# After the table's rows comes one that is waited for.
BLOCKED = f"""SELECT {SUMS} FROM (
    SELECT a FROM t UNION ALL SELECT a FROM o WHERE pg_advisory_xact_lock_shared({LOCK}) IS NOT NULL
) x"""


def keeper_time(stack):
    """Nanoseconds that the keeper's threads have run."""
    tasks = Path(f"/proc/{stack.keeper_pid()}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


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
    before = keeper_time(stack)
    # Waits that are too long to spin: from now on the backend wakes for few messages only.
    for _ in range(10):
        plan = run(app, f"EXPLAIN (ANALYZE) {BLOCKED}")
        assert "ConfideAggregate" in str(plan.rows)
    once = (keeper_time(stack) - before) // 10
    dba.execute(f"SELECT pg_advisory_lock({LOCK})")
    before = keeper_time(stack)
    thread = threading.Thread(target=run, args=(app, BLOCKED))
    thread.start()
    try:
        # Two batches of three are with the keeper.
        worked = grows(lambda: keeper_time(stack) - before, once * 0.4)
    finally:
        dba.execute(f"SELECT pg_advisory_unlock({LOCK})")
        thread.join()
    assert worked > once * 0.4, (worked, once)

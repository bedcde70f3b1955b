"""The keeper's memory: its default limits, and that memory is released.

Mechanism: by default values are evicted at half of the machine's memory, and statements are refused
only far beyond that. The allocator keeps at most some megabytes of freed memory. Bugs: there is a
hard limit of 4 GB without eviction; after drops the keeper's resident memory remains several times
the size of its values. Before the limit the log has a warning that says what to do.
"""

import os
import re
from pathlib import Path

import psycopg
import pytest
from stack import ROOT, Stack
from waiting import until

ROWS = 400_000


@pytest.fixture(scope="module")
def stack():
    """With a keeper of its own, whose values are those of these tests: what others have left goes
    meanwhile, or takes the room that is counted here."""
    made = Stack(ROOT / ".run" / f"memory-{os.getpid()}")
    made.fresh()
    yield made
    made.down("--remove")


def statistics(stack) -> dict[str, int]:
    with stack.connect_dba() as dba:
        rows = dba.execute("SELECT name, value FROM confide.confide_stat_keeper").fetchall()
    return {name: int(value) for name, value in rows if str(value).isdigit()}


def resident(stack) -> int:
    status = Path(f"/proc/{stack.keeper_pid()}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


def test_default(stack):
    now = statistics(stack)
    machine = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) * 1024
    assert 0 < now["memory_budget_bytes"] <= machine / 2
    assert now["memory_budget_bytes"] * 1.5 < now["memory_limit_bytes"] <= machine


def test_given_back(stack, schema):
    """Kept are some tables between those that go, so that holes are in the middle."""
    before = statistics(stack)["memory_bytes"], resident(stack)
    with stack.connect_app(options=f"-c search_path={schema}") as app:
        for table in range(6):
            columns = "a enc_int4, b enc_int8, c enc_numeric(12, 2), d enc_text"
            app.execute(f"CREATE TABLE t{table} ({columns})")
            with app.cursor().copy(f"COPY t{table} FROM STDIN") as copy:
                rows = ROWS // (6 if table % 2 else 2)
                for start in range(0, rows, 5000):
                    copy.write("".join(map(row, range(start, start + 5000))))
        loaded = statistics(stack)["memory_bytes"], resident(stack)
        values = loaded[0] - before[0]
        assert values > 20 << 20
        app.execute("DROP TABLE t0, t2, t4")
        while_it_works(
            app,
            lambda: statistics(stack)["memory_bytes"] - before[0] < values / 2,
            "the values of dropped tables are gone",
        )
        left = statistics(stack)["memory_bytes"] - before[0]
        wide = left * 2 + (12 << 20)
        while_it_works(
            app,
            lambda: resident(stack) - before[1] < wide,
            f"of {loaded[1] - before[1]} bytes for {values} less than {wide} are left for {left}",
        )


@pytest.fixture
def limited(stack, schema):
    """A keeper that takes 32 MB more than it begins with, and evicts nothing."""
    stack.kill_keeper()
    stack.up()
    limit = (statistics(stack)["memory_bytes"] >> 20) + 32
    ours = {"CONFIDE_KEEPER_MEMORY_LIMIT": f"{limit}MB", "CONFIDE_KEEPER_MEMORY_BUDGET": "0"}
    stack.environment.update(ours)
    stack.up()
    yield limit << 20
    for name in ours:
        del stack.environment[name]
    stack.up()


def test_warning_before_the_limit(stack, schema, limited):
    """Once four fifths are in use the log says what helps; only later statements fail."""
    sizes = stack.log_sizes()
    warning = "values take nearly all of memory_limit"
    with stack.connect_app(options=f"-c search_path={schema}") as app:
        app.execute("CREATE TABLE t (a enc_int4, b enc_int8, c enc_numeric(12, 2), d enc_text)")
        chunk = "".join(map(row, range(5000)))

        def load():
            with app.cursor().copy("COPY t FROM STDIN") as copy:
                copy.write(chunk)

        while statistics(stack)["memory_bytes"] < limited * 0.7:
            load()
        assert warning not in stack.logged_since(sizes)
        while statistics(stack)["memory_bytes"] < limited * 0.82:
            load()
        until(lambda: warning in stack.logged_since(sizes), "the warning")
        assert "memory_budget = 0 keeps all values in memory" in stack.logged_since(sizes)
        with pytest.raises(psycopg.errors.OutOfMemory):
            # Values of tables that were dropped earlier may go meanwhile.
            for _ in range(2000):
                load()
        assert app.execute("SELECT count(*) > 0 FROM t").fetchone() == (True,)


def row(i: int) -> str:
    return f"{i}\t{i * 7919}\t{i}.25\tnumber {i}\n"


def while_it_works(app, condition, what) -> None:
    """Until the condition holds; the session has statements meanwhile."""

    def holds():
        app.execute("SELECT 1")
        return condition()

    until(holds, what)

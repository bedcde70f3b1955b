"""Processes that die, stop responding or are slow: there is an SQL error in time, never a hang, and
`make up` restores everything.

The durability of values is tested in tests/durability.
"""

import os
import time
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from delivered import warm
from results import run
from stack import RUN, kill
from waiting import active, amid, limited, meanwhile, standing_still, until

# A join that computes for many seconds, row by row.
LONG = "SELECT count(*) FROM slow a, slow b WHERE a.n * b.n + b.n < 0"


@pytest.fixture
def slow(stack):
    """A connection with a table big enough for LONG, in a schema of its own."""
    stack.up()
    with stack.connect_app() as connection:
        connection.execute("DROP SCHEMA IF EXISTS faults CASCADE")
        connection.execute("CREATE SCHEMA faults")
        connection.execute("SET search_path = faults")
        connection.execute("CREATE TABLE slow (i int, n enc_numeric)")
        with connection.cursor().copy("COPY slow FROM STDIN") as copy:
            for i in range(20000):
                copy.write_row((i, i + 0.5))
        yield connection
    stack.up()


def usable(connection):
    """The connection works with protected values."""
    connection.execute("CREATE TEMP TABLE again (s enc_text)")
    connection.execute("INSERT INTO again VALUES ('x'), ('y')")
    assert run(connection, "SELECT s || '!' FROM again WHERE s > 'x'").rows == [("y!",)]
    connection.execute("DROP TABLE again")


def recovers(connection):
    """An old session is told at most once that the keeper it knew is gone, then it works."""
    outcome = run(connection, "SELECT count(*) FROM (VALUES ('x')) v (s) WHERE s::enc_text = 'x'")
    assert outcome.sqlstate in (None, "08003"), outcome
    usable(connection)


def test_keeper_killed_in_a_query(stack, slow):
    with amid(stack, stack.kill_keeper):
        outcome = run(slow, LONG)
    assert outcome.sqlstate is not None
    assert outcome.sqlstate[:2] in ("08", "58"), outcome
    # The session lives; protected values are out of reach, at once and clearly.
    assert run(slow, "SELECT 1").rows == [("1",)]
    outcome = run(slow, "SELECT n FROM slow LIMIT 1")
    assert outcome.sqlstate is not None
    assert outcome.sqlstate[:2] in ("08", "58"), outcome
    output = stack.up()
    assert "Starting the keeper" in output
    assert "PostgreSQL on port" in output
    recovers(slow)
    with stack.connect_app() as connection:
        usable(connection)


def test_keeper_killed_with_kept_values(stack, slow):
    """What is kept for delivery is given out by the word of a keeper that lives. Bug: a session
    goes on reading, though nobody knows any more who may; or is given what an earlier keeper has
    sealed."""
    query = "SELECT n FROM slow WHERE i = 7"
    with stack.connect_dba() as dba:
        dba.execute("GRANT pg_monitor TO app")
    warm(slow, query, [(Decimal("7.5"),)])
    stack.kill_keeper()
    outcome = run(slow, query)
    assert outcome.sqlstate is not None
    assert outcome.sqlstate[:2] in ("08", "58"), outcome
    stack.up()
    recovers(slow)
    # It took the table's old values from the WAL; new ones have other identifiers.
    slow.execute("UPDATE slow SET n = 8.5 WHERE i = 7")
    warm(slow, query, [(Decimal("8.5"),)])
    with stack.connect_app() as other:
        warm(other, query.replace("slow", "faults.slow"), [(Decimal("8.5"),)])


def test_keeper_killed_in_copy(stack, slow):
    slow.execute("CREATE TABLE c (i int, s enc_text)")
    with pytest.raises(psycopg.Error) as error:  # noqa: SIM117
        with slow.cursor().copy("COPY c FROM STDIN") as copy:
            for i in range(2000):
                copy.write_row((i, "x" * 100))
                if i == 1000:
                    stack.kill_keeper()
    assert error.value.sqlstate[:2] in ("08", "58")
    stack.up()
    recovers(slow)
    assert run(slow, "SELECT count(*) FROM c").rows == [("0",)]


def test_keeper_killed_in_parallel_query(stack, slow):
    for setting in ("parallel_setup_cost = 0", "parallel_tuple_cost = 0"):
        slow.execute(f"SET {setting}")
    slow.execute("SET min_parallel_table_scan_size = 0")
    with amid(stack, stack.kill_keeper):
        outcome = run(slow, LONG)
    assert outcome.sqlstate is not None
    assert outcome.sqlstate[:2] in ("08", "58"), outcome
    stack.up()
    recovers(slow)


def test_keeper_dead_when_connecting(stack, slow):
    """Without a keeper the application gets in or is told why; plain SQL is not disturbed."""
    stack.kill_keeper()
    try:
        with stack.connect_app() as connection:
            assert run(connection, "SELECT 1").rows == [("1",)]
            assert run(connection, "SELECT n FROM faults.slow").sqlstate[:2] in ("08", "58")
    except psycopg.OperationalError as error:
        assert "keeper" in str(error)
    with stack.connect_dba() as dba:
        assert run(dba, "SELECT count(*) FROM faults.slow").rows == [("20000",)]
        assert run(dba, "SELECT n FROM faults.slow LIMIT 1").sqlstate[:2] in ("08", "58")
    stack.up()
    with stack.connect_app() as connection:
        usable(connection)


def test_statement_timeout(slow):
    with limited(slow, "500ms"):
        outcome = run(slow, LONG)
    assert outcome.sqlstate == "57014"
    assert run(slow, "SELECT count(*) FROM slow WHERE n > 10").rows == [("19990",)]


def test_cancel(stack, slow):
    with amid(stack, slow.cancel_safe):
        outcome = run(slow, LONG)
    assert outcome.sqlstate == "57014"
    usable(slow)


def test_terminate(stack, slow):
    pid = slow.info.backend_pid
    row = slow.execute("SELECT pg_backend_pid()").fetchone()
    with stack.connect_dba() as dba:
        terminate = f"SELECT pg_terminate_backend({row[0]})"
        with amid(stack, lambda: dba.execute(terminate)):
            outcome = run(slow, LONG)
    assert outcome.sqlstate in ("57P01", "none"), (outcome, pid)
    with stack.connect_app() as connection:
        usable(connection)


def test_client_goes_away(stack, slow):
    """A client that vanishes in a query leaves no backend behind for long."""
    (pid,) = slow.execute("SELECT pg_backend_pid()").fetchone()
    slow.pgconn.send_query(LONG.encode())
    with stack.connect_dba() as dba:
        until(lambda: active(dba, pid), "the statement runs")
        slow.pgconn.finish()
        dba.execute(f"SELECT pg_cancel_backend({pid})")
        there = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        until(lambda: dba.execute(there, [pid]).fetchone() is None, "the backend is gone")


def test_keeper_stands_still(stack, slow):
    """A keeper that does not answer: timeouts and cancel work; when it goes on, so do we."""
    with standing_still(stack.keeper_pid()):
        with limited(slow, "500ms"):
            outcome = run(slow, "SELECT count(*) FROM slow WHERE n > 10")
        assert outcome.sqlstate == "57014"
        backend = slow.info.backend_pid
        with (
            stack.connect_dba() as dba,
            meanwhile(lambda: active(dba, backend), slow.cancel_safe),
        ):
            outcome = run(slow, "SELECT count(*) FROM slow WHERE n > 10")
        assert outcome.sqlstate == "57014"
        assert run(slow, "SELECT 1").rows == [("1",)]
    assert run(slow, "SELECT count(*) FROM slow WHERE n > 10").rows == [("19990",)]


def test_proxy_killed(stack, slow):
    kill(stack.proxy_pid())
    assert run(slow, "SELECT 1").sqlstate is not None
    assert "Starting the proxy" in stack.up()
    with stack.connect_app(options="-c search_path=faults") as connection:
        assert run(connection, "SELECT count(*) FROM slow WHERE n > 10").rows == [("19990",)]


def test_postmaster_killed(stack, slow):
    """After PostgreSQL's crash recovery, what was committed is there with its values."""
    slow.execute("INSERT INTO slow VALUES (-1, -12345.678)")
    slow.execute("CREATE INDEX slow_n ON slow (n)")
    kill(stack.postmaster_pid())
    output = stack.up()
    assert "Starting PostgreSQL" in output
    assert "keeper" not in output
    with stack.connect_app(options="-c search_path=faults -c enable_seqscan=off") as connection:
        assert run(connection, "SELECT n FROM slow WHERE i = -1").rows == [("-12345.678",)]
        assert run(connection, "SELECT i FROM slow WHERE n < 0").rows == [("-1",)]
        usable(connection)


def test_backend_killed(stack, slow):
    """PostgreSQL restarts all backends when one is killed; the keeper survives that."""
    with stack.connect_app(options="-c search_path=faults") as victim:
        row = victim.execute("SELECT pg_backend_pid()").fetchone()
        victim.execute("BEGIN")
        victim.execute("INSERT INTO slow VALUES (-2, -2)")
        kill(row[0])
        assert run(victim, "SELECT 1").sqlstate is not None
        victim.close()
    slow.close()
    stack.up()
    with stack.connect_app(options="-c search_path=faults") as connection:
        assert run(connection, "SELECT count(*), max(n) FROM slow").rows == [("20000", "19999.5")]


def test_everything_killed(stack, slow):
    pids = [stack.keeper_pid(), stack.postmaster_pid(), stack.proxy_pid()]
    for pid in pids:
        kill(pid)
    stack.up()
    assert not {stack.keeper_pid(), stack.postmaster_pid(), stack.proxy_pid()} & set(pids)
    with stack.connect_app() as connection:
        usable(connection)


def test_up_again_does_nothing(stack, slow):
    output = stack.up()
    assert output.count("\n") == 1
    assert run(slow, "SELECT count(*) FROM slow WHERE n > 10").rows == [("19990",)]


def test_stale_pid_files(stack, slow):
    """As after a reboot: the files name processes that are something else now."""
    stack.down()
    for name in ("KEEPER_PID_FILE", "PROXY_PID_FILE"):
        Path(stack.env[name]).write_text(f"{os.getpid()}\n")
    (stack.data / "postmaster.pid").write_text(f"{os.getpid()}\n{stack.data}\n")
    stack.up()
    with stack.connect_app() as connection:
        usable(connection)


def test_env_file(stack):
    lines = (RUN / "env").read_text().splitlines()
    names = [line.split("=", 1)[0] for line in lines]
    assert {"APP_URL", "DBA_URL", "PGDATA", "KEEPER_PID_FILE"} <= set(names)
    assert all(name.isidentifier() for name in names)


def test_idle_uses_no_cpu(stack, slow):
    """Nobody spins while nobody works."""

    def ticks(pid):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    backend = slow.execute("SELECT pg_backend_pid()").fetchone()[0]
    pids = [stack.keeper_pid(), stack.proxy_pid(), backend]
    assert run(slow, "SELECT n + 1 FROM slow LIMIT 1").rows == [("1.5",)]

    def idle():
        before = [ticks(pid) for pid in pids]
        time.sleep(2)  # a rate is what is tested
        # Hundredths of a second. A checkpoint may come between, but not each time.
        return max(ticks(pid) - b for pid, b in zip(pids, before, strict=True)) <= 3

    until(idle, "two seconds without work")

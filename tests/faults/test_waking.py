"""One-way messages wake a sleeping keeper only when some kilobytes are waiting; it finds the others
with the next answered message.

The backend has learnt that polling does not pay. Bug: the keeper sleeps while the ring is full, and
is never woken; or it starts only then.
"""

import contextlib
import threading
from pathlib import Path

import pytest
from waiting import poll_in_vain, until

# Of each row two messages of some 40 bytes, which nobody waits for. The keeper sleeps before them.
# Behind them the statement may have to wait for a lock.
LOCK = 4711
ROWS = f"""WITH p AS MATERIALIZED (SELECT pg_sleep(0.1))
           SELECT count(x), pg_advisory_xact_lock_shared({LOCK}) FROM
           (SELECT g::enc_int4 + 1 AS x FROM p, generate_series(1, {{rows}}) g OFFSET 0) s"""


def tasks(keeper: int) -> dict[int, int]:
    """Nanoseconds that each has run; some end meanwhile."""
    found = {}
    for task in Path(f"/proc/{keeper}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found[int(task.name)] = int((task / "schedstat").read_text().split()[0])
    return found


class Channel:
    """The application's connection, and the keeper's task that serves it."""

    def __init__(self, stack):
        self.keeper = stack.keeper_pid()
        earlier = tasks(self.keeper)
        self.connection = stack.connect_app()
        self.connection.execute("SET confide.enable_batch_aggregate = off")
        self.compare(1)
        # Others may begin meanwhile: ours is the one that works on what is asked.
        before = tasks(self.keeper)
        self.compare(100)
        after = tasks(self.keeper)
        new = after.keys() - earlier.keys()
        self.task = max(new, key=lambda task: after[task] - before.get(task, 0))
        self.connection.execute("SET statement_timeout = '1200s'")

    def compare(self, times: int) -> None:
        """So many answered messages."""
        query = f"SELECT count(*) FROM generate_series(1, {times}) g WHERE g::enc_int4 > 0"
        assert self.connection.execute(query).fetchone() == (times,)

    def send(self, rows: int) -> None:
        assert self.connection.execute(ROWS.format(rows=rows)).fetchone()[0] == rows

    def worked(self) -> float:
        """Seconds of a processor that the keeper's task has taken."""
        text = Path(f"/proc/{self.keeper}/task/{self.task}/schedstat").read_text()
        return int(text.split()[0]) / 1e9


@pytest.fixture
def channel(stack):
    stack.up()
    channel = Channel(stack)
    with poll_in_vain(stack, channel.connection):
        yield channel
    channel.connection.close()


def test_full_ring(channel):
    """More than the ring takes: the backend waits for room, and the keeper makes it."""
    channel.send(30000)
    channel.compare(40)


def test_before_the_ring_is_full(stack, channel):
    """It begins with what waits although nobody needs it yet."""
    before = channel.worked()
    sending = threading.Thread(target=channel.send, args=(2000,))
    with stack.connect_dba() as dba:
        dba.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        sending.start()
        until(lambda: channel.worked() - before > 0.0002, "the keeper begins")
        assert sending.is_alive()
    sending.join()
    channel.compare(40)

"""Crashes under load: keeper, PostgreSQL or both are killed with SIGKILL, and afterwards
every acknowledged commit is there with its values, and nothing else.

The seed decides what clients do and what is killed when; it is printed. Longer runs:
`make torture CYCLES=100 SEED=7`.
"""

import os
import random
import time

import psycopg
import pytest
from workload import Load

SEED = os.environ.get("CONFIDE_SEED", "1")
CYCLES = int(os.environ.get("CONFIDE_CYCLES", "0"))
# Without CYCLES: as many as fit into this time.
SECONDS = 100


def crash(stack, what: str) -> None:
    if what in ("keeper", "both"):
        stack.kill_keeper()
    if what in ("postgres", "both"):
        stack.kill_postgres()


def checkpoint(stack) -> None:
    """PostgreSQL's own: pages with FIDs go to disk, old WAL may go."""
    with stack.connect_dba() as dba:
        dba.execute("CHECKPOINT")
        dba.execute("SELECT pg_switch_wal()")


@pytest.fixture
def eager(stack):
    """Checkpoints of the keeper every second, so that crashes meet them."""
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM SET confide.checkpoint_interval = '1s'")
        dba.execute("ALTER SYSTEM SET checkpoint_timeout = '30s'")
        dba.execute("SELECT pg_reload_conf()")
    yield
    stack.up()
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM RESET ALL")
        dba.execute("SELECT pg_reload_conf()")


@pytest.mark.parametrize("what", ["keeper", "postgres", "both"])
def test_values_survive(stack, app, schema, what):
    """The plainest case, one for each kind of crash."""
    app.execute("CREATE TABLE t (id int, v enc_int4, s enc_text UNIQUE)")
    with app.cursor().copy("COPY t FROM STDIN") as copy:
        for i in range(5000):
            copy.write_row((i, i * 7, f"text {i}"))
    app.execute("BEGIN")
    app.execute("INSERT INTO t VALUES (-1, -1, 'not committed')")
    crash(stack, what)
    stack.up()
    app.close()  # when only the keeper died, its transaction is still open
    options = f"-c search_path={schema} -c statement_timeout=20s"
    with stack.connect_app(options=options) as connection:
        query = "SELECT count(*), sum(v), min(s), max(s) FROM t"
        row = connection.execute(query).fetchone()
        assert row == (5000, 7 * 4999 * 2500, "text 0", "text 999")
        row = connection.execute("SELECT id, v FROM t WHERE s = 'text 77'").fetchone()
        assert row == (77, 539)
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO t VALUES (1, 1, 'text 4000')")
        connection.execute("INSERT INTO t VALUES (-1, -1, 'not committed')")


def test_no_identifier_twice(stack, app, schema):
    """The keeper dies while FIDs are on their way into the WAL, again and again, and new rows
    come at once. Bug: the next run gives such a FID to another row, and one of the two shows
    the other's value, or the WAL gives the slot back to the first at the restart after."""
    load = Load(stack, schema + "_load", SEED)
    for client in load.clients:
        client.step = client.insert
    for _ in range(6):
        for client in load.clients:
            client.step = client.insert
        load.start()
        time.sleep(0.7)
        stack.kill_keeper()
        stack.up()
        time.sleep(0.3)
        load.stop()
        load.verify()
    commits, rows = load.counts()
    print(f"{commits} commits, {rows} rows")
    assert commits > 100


def test_torture(stack, eager):
    chance = random.Random(f"{SEED}/crashes")
    load = Load(stack, "torture", SEED)
    began = time.monotonic()
    crashes = {"keeper": 0, "postgres": 0, "both": 0}
    cycle = 0
    while cycle < CYCLES or (CYCLES == 0 and time.monotonic() - began < SECONDS):
        cycle += 1
        what = chance.choice(sorted(crashes))
        load.start()
        for _ in range(chance.randrange(1, 5)):
            time.sleep(chance.uniform(0.1, 1.0))
            if chance.random() < 0.3:
                checkpoint(stack)
        crash(stack, what)
        if chance.random() < 0.5:
            load.stop()
            stack.up()
        else:  # clients meet the recovery
            stack.up()
            time.sleep(chance.uniform(0, 1))
            load.stop()
        try:
            load.verify()
        except AssertionError as error:
            raise AssertionError(f"seed {SEED}, cycle {cycle}, {what}: {error}") from error
        crashes[what] += 1
    commits, rows = load.counts()
    errors = [client.errors for client in load.clients]
    print(f"seed {SEED}: {crashes}, {commits} commits, {rows} rows, errors {errors}")
    assert commits > 10 * cycle

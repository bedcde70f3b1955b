"""Clients work while keeper, PostgreSQL, both, single backends or the recovery worker are killed
with SIGKILL, at random moments or at named points in the code. Right: every acknowledged commit is
there with its values, and nothing else, and every identifier resolves.

The seed decides what clients do and what is killed when; it is printed. Longer runs: `make torture
CYCLES=500 SEED=1`, which also writes its result into docs/reliability.md.
"""

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter

import psycopg
import pytest
from stack import ROOT
from waiting import until
from workload import Load

SEED = os.environ.get("CONFIDE_SEED", "1")
CYCLES = int(os.environ.get("CONFIDE_CYCLES", "0"))
# Without CYCLES: as many as fit into this time.
SECONDS = 70
# From so many cycles on a run is worth a line in the documentation.
REPORTED = 100
REPORT = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- torture: written by make torture -->\n", "<!-- end of torture -->\n"

KILLS = ["keeper", "postgres", "both", "backend", "worker"]
# Where backends and the recovery worker die, and how often they pass there.
POINTS = ["before-log/8", "after-log/8", "before-checkpoint/2", "after-checkpoint/2"]
POINTS += ["after-slot/2", "feed/30", "before-done/2", "after-done/2"]
# Where the keeper dies. It is restarted at once, so that it meets recovery, too.
KEEPER_POINTS = ["promoted/10", "checkpoint-begun/2", "checkpoint-committed/2", "redo/40"]
KEEPER_POINTS += ["up-to-date/2"]


class Torture:
    def __init__(self, stack, load: Load, chance: random.Random):
        self.stack, self.load, self.chance = stack, load, chance
        self.kills: Counter[str] = Counter()
        self.log_read = 0
        self.keeper_died = False

    def cycle(self) -> str:
        what = self.chance.choice([*KILLS, *KILLS, *POINTS, *KEEPER_POINTS])
        with contextlib.suppress(OSError):
            self.arm(what)
        self.load.start()
        for _ in range(self.chance.randrange(1, 3)):
            time.sleep(self.chance.uniform(0.05, 0.3))
            if self.chance.random() < 0.3 or "checkpoint" in what or "slot" in what:
                self.checkpoint()
        if what in KILLS:
            self.kill(what)
        elif "done" in what or "feed" in what:  # the worker passes there when it recovers
            self.kill("keeper")
            self.restart()
            time.sleep(0.1)
        self.keeper_died = not self.stack.keeper_runs()
        if self.chance.random() < 0.5:  # clients meet the recovery
            self.restart()
            time.sleep(self.chance.uniform(0, 0.3))
        self.disarm(what)
        self.load.ask_to_stop()
        self.restart()
        self.load.stop()
        self.await_service()
        self.load.verify()
        self.count(what)
        return what

    def count(self, what: str) -> None:
        """A point that nobody passed killed nobody."""
        if what in POINTS:
            died = b"by signal 9" in self.new_log()
        elif what in KEEPER_POINTS:
            died = self.keeper_died
        else:
            died = True
        self.kills[what.split("/")[0] if died else "nobody"] += 1

    def new_log(self) -> bytes:
        """What PostgreSQL has logged since this was last asked: the log of a long run is large."""
        with (self.stack.logs / "postgres.log").open("rb") as log:
            log.seek(self.log_read)
            new = log.read()
        self.log_read += len(new)
        return new

    def arm(self, what: str) -> None:
        if what in POINTS:
            self.new_log()
            self.set_point(what)
        elif what in KEEPER_POINTS:
            self.stack.kill_keeper()
            self.stack.start_keeper(CONFIDE_FAULT_POINT=what)

    def disarm(self, what: str) -> None:
        if what in POINTS:
            self.set_point("")
        elif what in KEEPER_POINTS:
            self.keeper_died |= not self.stack.keeper_runs()
            with contextlib.suppress(OSError):
                self.stack.kill_keeper()

    def set_point(self, point: str) -> None:
        (self.stack.data / "fault.conf").write_text(f"confide.fault_point = '{point}'\n")
        (self.stack.data / "fault.conf").chmod(0o644)
        with contextlib.suppress(OSError):
            os.kill(self.stack.postmaster_pid(), signal.SIGHUP)

    def checkpoint(self) -> None:
        """The keeper's, and PostgreSQL's own: pages with FIDs go to disk, old WAL may go."""
        with contextlib.suppress(psycopg.Error), self.stack.connect_dba() as dba:
            dba.execute("SELECT confide.checkpoint()")
            dba.execute("CHECKPOINT")
            dba.execute("SELECT pg_switch_wal()")

    def kill(self, what: str) -> None:
        if what in ("keeper", "both"):
            self.stack.kill_keeper()
        if what in ("postgres", "both"):
            self.stack.kill_postgres()
        if what in ("backend", "worker"):
            kind = "client backend" if what == "backend" else "confide recovery"
            with contextlib.suppress(psycopg.Error, OSError), self.stack.connect_dba() as dba:
                sql = """SELECT pid FROM pg_stat_activity
                         WHERE backend_type = %s AND pid <> pg_backend_pid()"""
                pids = sorted(row[0] for row in dba.execute(sql, (kind,)))
                if pids:
                    os.kill(self.chance.choice(pids), signal.SIGKILL)

    def restart(self) -> None:
        if not self.stack.keeper_runs():
            self.stack.start_keeper()
        if not self.stack.postgres_runs():
            self.stack.start_postgres()

    def await_service(self) -> None:
        def served():
            with (
                contextlib.suppress(psycopg.Error),
                self.stack.connect_app() as app,
                self.stack.connect_dba() as dba,
            ):
                app.execute("SELECT 1")
                dba.execute("SELECT 1")
                return True

        until(served, "there is service")


@pytest.fixture
def eager(stack):
    """Checkpoints of the keeper every second, so that crashes meet them."""
    settings = {
        "confide.checkpoint_interval": "1s",
        "checkpoint_timeout": "30s",
        "autovacuum_naptime": "1s",
        "max_prepared_transactions": "20",
    }
    with stack.connect_dba() as dba:
        for name, value in settings.items():
            dba.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    with (stack.data / "postgresql.conf").open("a") as conf:
        conf.write("include_if_exists 'fault.conf'\n")
    stack.down()
    stack.up()
    yield
    with contextlib.suppress(OSError):
        (stack.data / "fault.conf").unlink()
    stack.down()
    stack.up()
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM RESET ALL")
    stack.down()
    stack.up()


@pytest.mark.timeout(600 + 10 * CYCLES)
def test_torture(stack, eager):
    torture = Torture(stack, Load(stack, "torture", SEED), random.Random(f"{SEED}/crashes"))
    load = torture.load
    for client in load.clients:
        client.prepares = True
    began = time.monotonic()
    cycle = 0
    while cycle < CYCLES or (CYCLES == 0 and time.monotonic() - began < SECONDS):
        cycle += 1
        try:
            what = torture.cycle()
        except (AssertionError, psycopg.Error) as error:
            raise AssertionError(f"seed {SEED}, cycle {cycle}: {error}") from error
        if CYCLES > 0 and cycle % 5 == 0:
            print(f"cycle {cycle}: {what}, {time.monotonic() - began:.0f} s", flush=True)
    commits, rows = load.counts()
    errors: Counter[str] = Counter()
    for client in load.clients:
        errors.update(client.errors)
    print(f"seed {SEED}: {cycle} cycles, {dict(torture.kills)}, {commits} commits, {rows} rows, ")
    print(f"{load.checks()} checks, errors {dict(errors)}, {time.monotonic() - began:.0f} s")
    assert commits > 2 * cycle
    if CYCLES >= REPORTED:
        report(cycle, torture.kills, commits, load.checks(), errors, time.monotonic() - began)


def report(cycles, kills, commits, checks, errors, seconds) -> None:
    """One line for each seed; a later run takes the place of an earlier one."""
    version = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(version, capture_output=True, text=True, check=True).stdout.strip()
    listed = ", ".join(f"{name} {count}" for name, count in sorted(kills.items()))
    cells = [SEED, cycles, listed, commits, checks, sum(errors.values()), f"{seconds:.0f}", commit]
    line = "| " + " | ".join(str(cell) for cell in cells) + " |\n"
    text = REPORT.read_text()
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    lines = [one for one in table.splitlines(keepends=True) if not one.startswith(f"| {SEED} |")]
    REPORT.write_text(before + BEGIN + "".join([*lines, line]) + END + after)

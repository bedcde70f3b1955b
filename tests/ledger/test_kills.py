"""What crashes leave of ledgers. Right: what clients saw commit is there, in its order, and logs
go on. Bug: a log lacks an entry in the middle, since the record that had it was lost, or the one
that was to make up for that; once the keeper is restarted, nobody can write any more.

CONFIDE_CYCLES: how many random kills (3); CONFIDE_SEED: which (any)."""

import json
import os
import random
import threading
import time
from functools import partial

import psycopg
import pytest
from ledgers import change, make_bond, unresolved
from waiting import standing_still, stopped_backend, until, until_waits

CYCLES = int(os.environ.get("CONFIDE_CYCLES", "3"))
SEED = int(os.environ.get("CONFIDE_SEED", "0")) or random.randrange(1, 1 << 32)


@pytest.fixture
def bond(app):
    make_bond(app)
    return app


def fails(act, *arguments) -> None:
    with pytest.raises(psycopg.OperationalError):
        act(*arguments)


def changed(connection) -> list[int]:
    sql = "SELECT id FROM bond WHERE note = 'changed' ORDER BY id"
    return [number for (number,) in connection.execute(sql)]


class Apps:
    """Connections of the application to a schema, from one crash to the next."""

    def __init__(self, stack, schema: str):
        self.stack, self.options = stack, f"-c search_path={schema}"

    def connect(self):
        return self.stack.connect_app(options=self.options)

    def dies(self, point: str, act) -> None:
        """A backend dies at this point of what it does, and PostgreSQL with it."""
        with self.stack.connect_dba() as dba:
            dba.execute(f"ALTER ROLE app SET confide.fault_point = '{point}'")
        try:
            with self.connect() as app:
                fails(act, app)
        finally:
            self.stack.up()
            with self.stack.connect_dba() as dba:
                dba.execute("ALTER ROLE app RESET confide.fault_point")

    def restart_keeper(self) -> None:
        self.stack.kill_keeper()
        self.stack.up()


@pytest.fixture
def apps(stack, bond, schema):
    return Apps(stack, schema)


@pytest.mark.parametrize("point", ["ledger-sealed", "ledger-logged"])
@pytest.mark.parametrize("times", [1, 2, 3])
def test_records_lost(apps, auditor, point, times):
    """Before they are written, or with the WAL's end; then again, before anybody has committed."""
    for number in range(times):
        apps.dies(point, partial(change, number=1 + number))
    with apps.connect() as app:
        # What was lost, and what was not tried.
        change(app, 1)
        change(app, 10)
    apps.restart_keeper()
    with apps.connect() as app:
        change(app, 11)
        assert changed(app) == [1, 10, 11]
        auditor.app = app
        assert auditor.findings("bond") == []


def test_many_lost(apps, auditor):
    """More entries than one record has."""
    fill = "INSERT INTO bond (id) SELECT n FROM generate_series(101, 40100) n"
    apps.dies("ledger-logged", lambda app: app.execute(fill))
    with apps.connect() as app:
        change(app, 1)
    apps.restart_keeper()
    with apps.connect() as app:
        change(app, 2)
        assert changed(app) == [1, 2]
        auditor.app = app
        assert auditor.findings("bond") == []


def test_cancelled(stack, apps, dba, auditor):
    """Commits that are given up while the keeper makes their entries: nobody writes the record."""
    for number in range(1, 4):
        with apps.connect() as app:
            app.execute("BEGIN")
            change(app, number)
            with standing_still(stack.keeper_pid()):
                commit = threading.Thread(target=fails, args=(app.commit,))
                commit.start()
                until_waits(stack, app, "Extension", looks=20)
                dba.execute("SELECT pg_cancel_backend(%s)", (app.info.backend_pid,))
                commit.join()
    with apps.connect() as app:
        change(app, 1)
    apps.restart_keeper()
    with apps.connect() as app:
        change(app, 11)
        assert changed(app) == [1, 11]
        auditor.app = app
        assert auditor.findings("bond") == []


def test_asynchronous_commit(stack, apps, auditor):
    """What the keeper takes for committed is on disk."""
    with apps.connect() as app:
        app.execute("SET synchronous_commit = off")
        for number in range(1, 11):
            change(app, number)
        stack.kill_postgres()
    stack.up()
    with apps.connect() as app:
        change(app, 11)
    apps.restart_keeper()
    with apps.connect() as app:
        change(app, 12)
        assert changed(app) == list(range(1, 13))
        auditor.app = app
        assert auditor.findings("bond") == []


def test_signed_before(stack, apps, dba, auditor, tmp_path):
    """What is signed while a backend stands still between its entries and their record. Bug: it is
    about entries that a crash takes away, so the log seems to have been changed."""
    dba.execute("ALTER ROLE app SET confide.fault_point = 'stop ledger-sealed'")
    with apps.connect() as app:
        dba.execute("ALTER ROLE app RESET confide.fault_point")
        thread = threading.Thread(target=fails, args=(change, app, 1))
        thread.start()
        stopped_backend(dba)
        with apps.connect() as other:
            auditor.app = other
            early = auditor.note("bond", "n")
            query = "SELECT id FROM bond WHERE id = 7 WITH SIGNATURE 'n'"
            (shown,) = other.execute(query).fetchone()
            digest = tmp_path / "digest"
            digest.write_text(
                other.execute("SELECT confide.ledger_checkpoint('bond')").fetchone()[0]
            )
        stack.kill_keeper()
        stack.kill_postgres()
        thread.join()
    stack.up()
    size = int(digest.read_text().splitlines()[1])
    assert f"\nsize {size}\n" in early
    assert [ledger["size"] for ledger in json.loads(shown)["result"]["ledgers"]] == [size]
    with apps.connect() as app:
        change(app, 2)
        change(app, 3)
        auditor.app = app
        later = auditor.note("bond", "n", size)
        assert auditor.verify(later, "--nonce", "n", "--digest", digest)[0] == 0


class Writer(threading.Thread):
    """Gives one row new prices, one after the other. Knows which were acknowledged."""

    def __init__(self, apps: Apps, number: int, stop: threading.Event):
        super().__init__()
        self.apps, self.number, self.stopped = apps, number, stop
        self.price, self.acknowledged, self.undone = 1000, [], []
        self.errors = []

    def run(self):
        while not self.stopped.is_set():
            try:
                with self.apps.connect() as app:
                    while not self.stopped.is_set():
                        self.change(app)
            except psycopg.Error as error:
                self.errors.append(f"{error.sqlstate} {error}")
                time.sleep(0.05)

    def change(self, app):
        self.price += 1
        undone = self.price % 3 == 0
        with app.transaction(force_rollback=undone):
            if self.price % 7 == 0:
                change(app, self.number)
            if self.price % 5 == 0:
                app.execute("DELETE FROM bond WHERE id = %s", (self.number,))
                app.execute("INSERT INTO bond VALUES (%s, 'bond', %s)", (self.number, self.price))
            else:
                app.execute("UPDATE bond SET price = %s WHERE id = %s", (self.price, self.number))
        (self.undone if undone else self.acknowledged).append(self.price)


def go_on(writers: list[Writer]) -> None:
    before = [len(writer.acknowledged) for writer in writers]
    until(
        lambda: all(len(w.acknowledged) > n + 3 for w, n in zip(writers, before, strict=True)),
        "all writers go on",
    )


@pytest.fixture
def often(stack):
    """The keeper makes checkpoints all the time."""
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM SET confide.checkpoint_interval = '1s'")
        dba.execute("SELECT pg_reload_conf()")
    yield
    with stack.connect_dba() as dba:
        dba.execute("ALTER SYSTEM RESET confide.checkpoint_interval")
        dba.execute("SELECT pg_reload_conf()")


def test_kills_under_load(stack, apps, auditor, schema, often):
    """Whatever is killed, and whenever: acknowledged prices are in the history or current, in
    their order, those of transactions that were rolled back are not, and each identifier has its
    value. A keeper that was restarted misses nothing, whichever ends it knows."""
    draw = random.Random(SEED)
    print(f"seed {SEED}")
    stop = threading.Event()
    writers = [Writer(apps, number, stop) for number in range(1, 5)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(CYCLES):
            go_on(writers)
            time.sleep(draw.uniform(0, 1))
            what = draw.choice(["keeper", "postgres", "both"])
            if what != "postgres":
                stack.kill_keeper()
            if what != "keeper":
                stack.kill_postgres()
            stack.up()
        go_on(writers)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    with apps.connect() as app, stack.connect_dba() as dba:
        dba.execute(f"SET search_path = {schema}")
        for writer in writers:
            sql = "SELECT price FROM bond_ledger WHERE id = %s ORDER BY valid_from, price"
            found = app.execute(sql, (writer.number,)).fetchall()
            prices = [int(price) for (price,) in found]
            assert set(writer.acknowledged) <= set(prices)
            assert not set(writer.undone) & set(prices)
            assert [error for error in writer.errors if error.startswith("XX")] == []
            assert prices == sorted(prices)
        assert unresolved(dba) == 0
        auditor.app = app
        assert auditor.findings("bond") == []
    apps.restart_keeper()
    with apps.connect() as app:
        auditor.app = app
        assert auditor.findings("bond") == []

"""Statements that were recorded while others wrote, replayed with the rows that they saw.

Mechanism: a base of clones is made, then writers insert, update and delete protected rows and
commit, while statements are recorded; for some of these a clone is made with the rows that the
statement saw, from the base and the WAL. Right: the recorded rows and plan, for each; what has no
position in the WAL is refused, and why. Bug: a statement is replayed with rows of another moment:
refused because they are unknown, or answered with other rows.
"""

import random
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import psycopg
import pytest
from clones import is_envelope, same_rows, shape
from copies import owned
from recordings import Recorder, statements
from results import run
from stack import PG_BIN, ROOT, Stack, as_user, free_port
from waiting import until

WRITERS, ACCOUNTS, ROUNDS = 3, 60, 12
QUERIES = {
    "aggregate": "SELECT branch, count(*), sum(balance) FROM account WHERE balance > 500"
    " GROUP BY branch ORDER BY branch",
    "join": "SELECT a.id, o.name FROM account a JOIN owner o ON o.name = a.name"
    " WHERE a.balance > 300 ORDER BY a.id",
    "order": "SELECT id, name, balance FROM account ORDER BY balance DESC, id LIMIT 20",
    "index": "SELECT id FROM account WHERE name > 'owner 05' AND name < 'owner 08'"
    " ORDER BY name, id",
}


class Writer(threading.Thread):
    """Inserts, updates and deletes rows of its own range, and commits each time."""

    def __init__(self, stack, number):
        super().__init__()
        self.stack, self.number = stack, number
        self.ends, self.commits, self.error = threading.Event(), 0, None

    def run(self):
        try:
            with self.stack.connect_app() as app:
                while not self.ends.is_set():
                    self.write(app, random.Random(self.number * 10_000 + self.commits))
                    self.commits += 1
        except psycopg.Error as error:
            self.error = error

    def write(self, app, chance):
        own = self.number * 1000 + chance.randrange(ACCOUNTS)
        name, balance = f"owner {chance.randrange(10):02}", chance.randrange(1000)
        what = chance.randrange(3)
        if what == 0:
            app.execute(f"DELETE FROM account WHERE id = {own}")
        elif what == 1:
            app.execute(f"UPDATE account SET balance = {balance}, name = '{name}' WHERE id = {own}")
        else:
            app.execute(
                f"INSERT INTO account VALUES ({own}, {self.number}, '{name}', {balance})"
                f" ON CONFLICT (id) DO UPDATE SET balance = excluded.balance"
            )


def written(writers, enough):
    """Whether there are so many commits, or no more to be waited for."""
    return sum(w.commits for w in writers) >= enough or any(w.error for w in writers)


class Recorded:
    """Statements beside writers, and what they gave."""

    def __init__(self, stack, folder):
        self.stack, self.folder = stack, folder
        self.runs = []
        self.recorder = Recorder(stack, folder / "own")
        (folder / "own").mkdir()
        with stack.connect_dba() as dba:
            dba.execute("ALTER DATABASE app SET max_parallel_workers_per_gather = 0")
            dba.execute("ALTER SYSTEM SET autovacuum = off")
            dba.execute("SELECT pg_reload_conf()")
        with stack.connect_app() as app:
            self.fill(app)
            shutil.copy(stack.data.parent / "bin" / "confide", folder)
            shutil.copy(stack.data.parent / "bin" / "confide-replayer", folder)
            owned("postgres", folder)
            made = self.confide("clone", folder / "base", "--base", *self.place())
            assert made.returncode == 0, made.stderr
            self.recorder.start("--database", "app")
            self.beside_writers(app)
            self.refused = self.others(app)
            self.recorder.stop()
        shutil.copytree(self.recorder.directory, folder / "recording")
        shutil.copy(self.recorder.key, folder / "recording.key")
        owned("postgres", folder)

    def place(self):
        return ["--dbname", self.stack.dba_url, "--bindir", PG_BIN]

    def confide(self, *command):
        return subprocess.run(
            as_user("postgres", [self.folder / "confide", *command]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )

    def fill(self, app):
        app.execute("CREATE TABLE owner (name enc_text PRIMARY KEY, plain int)")
        app.execute(
            "INSERT INTO owner SELECT to_char(i, '\"owner \"FM00'), i FROM generate_series(0, 9) i"
        )
        app.execute(
            "CREATE TABLE account (id int PRIMARY KEY, branch int, name enc_text, balance enc_int8)"
        )
        app.execute("CREATE INDEX account_name ON account (name)")
        for number in range(WRITERS):
            app.execute(
                f"INSERT INTO account SELECT {number} * 1000 + i, {number},"
                f" to_char(i % 10, '\"owner \"FM00'), i * 16"
                f" FROM generate_series(0, {ACCOUNTS - 1}) i"
            )
        app.execute("ANALYZE")

    def beside_writers(self, app):
        writers = [Writer(self.stack, number) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        try:
            for n in range(ROUNDS):
                enough = sum(writer.commits for writer in writers) + WRITERS * 3
                for kind, text in QUERIES.items():
                    self.run(app, kind, text.replace("SELECT", f"SELECT {n} AS run{n},", 1), n)
                until(lambda enough=enough: written(writers, enough), "others have committed")
        finally:
            for writer in writers:
                writer.ends.set()
            for writer in writers:
                writer.join()
        assert not [writer.error for writer in writers if writer.error]

    def run(self, app, kind, text, number):
        planned = shape(app, text)
        sizes = self.stack.log_sizes()
        found = run(app, text)
        assert found.sqlstate is None, found
        logged = statements(self.stack.logged_since(sizes))
        logged = [s for s in logged if f"AS run{number}," in s]
        self.runs.append((kind, logged[-1], planned, found))

    def others(self, app):
        """Statements whose rows no position in the WAL has; by why."""
        texts = {}

        def logged(what, text, execute=app.execute):
            sizes = self.stack.log_sizes()
            execute(text)
            own = statements(self.stack.logged_since(sizes))
            texts[what] = [found for found in own if "account" in found][-1]

        app.execute(
            "CREATE FUNCTION twice() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$"
            " DECLARE n bigint;"
            " BEGIN UPDATE owner SET plain = plain + 1 WHERE plain = 1;"
            " SELECT count(*) INTO n FROM account; RETURN n; END $$"
        )
        app.execute(
            "CREATE FUNCTION counted() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$"
            " DECLARE n bigint; BEGIN SELECT count(*) INTO n FROM account; RETURN n; END $$"
        )
        logged("functions in it", "SELECT twice(), count(*) FROM account")
        logged("changes or locks rows", "UPDATE account SET branch = branch WHERE id = 1")
        app.execute("BEGIN")
        app.execute("UPDATE owner SET plain = plain")
        logged("its own transaction had changed", "SELECT count(*), 1 AS own FROM account")
        app.execute("COMMIT")
        self.in_turns(app, logged)
        for _ in range(2):
            logged("ran 2 times", "SELECT count(*), 2 AS twice FROM account")
        # Whose last statements ask the keeper nothing, so they do not wake it.
        texts["no run of this statement"] = "SELECT 5 FROM account"
        return texts

    def in_turns(self, app, logged):
        """A cursor whose function sees what was committed while it was open."""
        with self.stack.connect_app() as other:
            app.execute("BEGIN")
            cursor = "DECLARE c CURSOR FOR SELECT counted() FROM account"
            logged("functions in it, in a cursor", cursor)
            app.execute("FETCH 1 FROM c")
            other.execute("UPDATE owner SET plain = plain")
            app.execute("SELECT 1")
            app.execute("FETCH 1 FROM c")
            app.execute("COMMIT")


@pytest.fixture(scope="module")
def recorded(stack):
    made = Stack(ROOT / ".run" / f"{stack.run.name}-snapshots")
    made.environment["CONFIDE_KEEPER_ADMINISTRATORS"] = "app"
    folder = Path(tempfile.mkdtemp(prefix="confide"))
    folder.chmod(0o755)
    made.up()
    yield Recorded(made, folder)
    made.down("--remove")
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def complete(recorded):
    """The base with its WAL, after the recording."""
    early = cloned(recorded, "early", recorded.runs[0][1])
    assert early.returncode == 1
    assert "the base is not complete" in early.stderr
    made = recorded.confide("clone", recorded.folder / "base", "--complete", *recorded.place())
    assert made.returncode == 0, made.stderr
    with recorded.stack.connect_dba() as dba:
        slots = "SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'confide_clone%'"
        assert dba.execute(slots).fetchone() == (0,)
    return recorded


def cloned(recorded, name, text, *more, port=None):
    file = recorded.folder / f"{name}.sql"
    file.write_text(text + ";\n")
    owned("postgres", file)
    return recorded.confide(
        "clone",
        recorded.folder / name,
        *("--bindir", PG_BIN, "--port", str(port or free_port())),
        *("--of", recorded.folder / "base", "--statement", file),
        *("--recording", recorded.folder / "recording", "--key", recorded.folder / "recording.key"),
        *more,
    )


def replayed(recorded, name, text, *more, runs=None):
    """Rows and plan of a statement, or of another one, in a clone for it; None and why, if there is
    none."""
    port = free_port()
    made = cloned(recorded, name, text, *more, port=port)
    if made.returncode != 0:
        assert not (recorded.folder / name).exists(), made.stderr
        return None, made.stderr
    url = f"host={recorded.folder / name} port={port} dbname=app user=postgres"
    try:
        assert shares(recorded) == ("share blocks with the base" in made.stdout), made.stdout
        with psycopg.connect(url, autocommit=True) as clone:
            found, plan = run(clone, runs or text), shape(clone, text)
        refused = (recorded.folder / name / "replayer.log").read_text()
        return found, plan if found.sqlstate is None else refused
    finally:
        stopped = recorded.confide("clone", recorded.folder / name, "--stop", "--bindir", PG_BIN)
        shutil.rmtree(recorded.folder / name)
        assert stopped.returncode == 0, stopped.stderr


def shares(recorded):
    """Whether the file system can share blocks."""
    probe = recorded.folder / "probe"
    command = ["cp", "--reflink=always", recorded.folder / "confide", probe]
    done = subprocess.run(command, capture_output=True, check=False)
    probe.unlink(missing_ok=True)
    return done.returncode == 0


@pytest.mark.parametrize("kind", QUERIES)
def test_beside_writers(complete, kind, report):
    """The first, a middle and the last run; others wrote between them."""
    own = [entry for entry in complete.runs if entry[0] == kind]
    assert len({str(found.rows) for _, _, _, found in own}) > 1, "nobody wrote anything"
    exact = 0
    for n in (0, ROUNDS // 2, ROUNDS - 1):
        _, text, planned, wanted = own[n]
        got, plan = replayed(complete, f"{kind}{n}", text)
        if got is None:
            # Two commits that became visible in another order than they stand in the WAL.
            assert "not yet transaction" in plan, plan
            continue
        assert got.sqlstate is None, (n, got, plan)
        assert same_rows(got, wanted), (n, got.rows, wanted.rows)
        plain = [[cell for cell in row if not is_envelope(cell)] for row in got.rows]
        assert len(plain) == len(wanted.rows)
        assert plan == planned
        exact += 1
    report(f"{kind} beside writers: {exact} of 3 runs replayed with the rows that they saw")
    assert exact >= 2


def test_another_moment(complete):
    """What the first run saw is not in the clone for the last one. Bug: it does not matter where
    recovery stops, and the tests above compare nothing."""
    for kind in ("aggregate", "order"):
        own = [entry for entry in complete.runs if entry[0] == kind]
        (_, first, _, wanted), (_, last, _, _) = own[0], own[-1]
        got, said = replayed(complete, f"{kind}-other", last, runs=first)
        assert got is not None, said
        assert not same_rows(got, wanted), kind


def test_refused(complete):
    """What no position has, is said, and nothing is made."""
    for n, (why, text) in enumerate(complete.refused.items()):
        got, said = replayed(complete, f"refused{n}", text)
        assert got is None, why
        assert why.split(",")[0] in said, (why, said)


def test_runs(complete):
    """One of several runs is chosen by its number."""
    text = complete.refused["ran 2 times"]
    for number in ("1", "2"):
        got, _ = replayed(complete, f"run{number}", text, "--run", number)
        assert got.sqlstate is None, got
    got, said = replayed(complete, "run3", text, "--run", "3")
    assert got is None
    assert "has 2 runs" in said

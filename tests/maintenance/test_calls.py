"""Logs of calls, from a keeper with a bug to another keeper where the bug shows with other
operands.

Mechanism: a test build of the keeper has an operator with a bug; a client requests a log of his own
calls, and masks it; the masked calls run as statements with the same kind of keeper, in a table
without true values. Right: each of four bugs shows there as before, and the administrator gets no
value of the client. Bug: somebody gets a log of another's calls, a value is not masked, or the bug
does not show.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest
from recordings import Recorder
from results import run
from stack import ROOT, Stack, kill
from waiting import until

RULES = """
[column."client.person.name"]
mask = "scramble"
[constant]
mask = "keep"
"""
# The true names, and statements whose calls go wrong.
NAMES = ["佐藤次郎", "55-1234", "Ann Miller", "éa17"]
BUGS = {
    "wrong": "SELECT left(name, 2) FROM client.person WHERE id = 0",
    "panic": "SELECT strpos(name, '45') FROM client.person WHERE id = 1",
    "memory": "SELECT upper(name) FROM client.person WHERE id = 2",
    "endless": "SELECT ltrim(name, 'éa') FROM client.person WHERE id = 3",
}


class Bugs:
    """A stack whose keeper can have a bug, and one that a client keeps for his own use."""

    def __init__(self, stack, folder, program):
        self.stack, self.folder, self.program, self.bug = stack, folder, program, ""
        # The packages that scripts/build names, so that nothing is compiled again but the keeper,
        # and that quickly.
        build = ["cargo", "build", "--quiet", "--release", "--example", "seeded_keeper"]
        build += ["--config", "profile.release.package.keeper.opt-level=0"]
        build += [word for name in ("keeper", "proxy", "cli", "replay") for word in ("-p", name)]
        subprocess.run([*build, "--features", "keeper/seeded"], cwd=ROOT, check=True)
        self.keeper = stack.data.parent / "bin" / "confide-keeper"
        self.sound = folder / "confide-keeper"
        shutil.copy(self.keeper, self.sound)
        with stack.connect_app() as app:
            app.execute("CREATE SCHEMA client")
            app.execute("CREATE TABLE client.person (id int, name enc_text)")
            for number, name in enumerate(NAMES):
                app.execute(f"INSERT INTO client.person VALUES ({number}, '{name}')")

    def restart(self, bug, **settings):
        """The keeper again, with a bug or without any."""
        self.bug = bug
        self.stack.kill_keeper()
        self.keeper.unlink()
        seeded = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        seeded = seeded / "release/examples/seeded_keeper"
        shutil.copy(seeded if bug else self.sound, self.keeper)
        self.stack.start_keeper(CONFIDE_SEEDED=bug, **settings)
        until(self.serves, "the keeper is up to date")

    def serves(self):
        try:
            with self.stack.connect_app() as app:
                return run(app, "SELECT name FROM client.person WHERE id = 0").rows
        except psycopg.OperationalError:
            return None

    def execute(self, *texts):
        """Each text's outcome; a statement that a keeper never answers has an end, too. None is
        prepared: a plan that stays would have its constants computed once."""
        with self.stack.connect_app(prepare_threshold=None) as app:
            app.execute(f"SET statement_timeout = '{10 if self.bug == 'endless' else 0}s'")
            return [run(app, text) for text in texts]

    def anonymise(self, *arguments, bug=""):
        environment = {**os.environ, "CONFIDE_SEEDED": bug}
        done = subprocess.run(
            [self.program, *arguments], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def bugs(stack, tmp_path_factory):
    subprocess.run([ROOT / "scripts" / "traced", "--features", "seeded"], check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    made = Stack(ROOT / ".run" / f"{stack.run.name}-calls")
    made.up()
    yield Bugs(made, tmp_path_factory.mktemp("calls"), target / "traced/release/confide-anonymise")
    kill(made.keeper_pid())  # one of its threads may be in an endless loop
    made.down("--remove")


def logged(bugs, folder, statement):
    """The log of the calls of a statement, as the client has it."""
    recorder = Recorder(bugs.stack, folder)
    recorder.start("--calls")
    (outcome,) = bugs.execute(statement)
    recorder.stop()
    for file in recorder.directory.iterdir():
        assert not [name for name in NAMES if name.encode() in file.read_bytes()]
    log = folder / "true.calls"
    done = recorder.confide("calls", recorder.directory, "--key", recorder.key, "--out", log)
    assert done.returncode == 0, done.stderr
    return recorder, log, outcome


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1])


def shows(bugs, bug, statement):
    """Whether a statement shows the bug at the keeper that has it."""
    bugs.restart(bug)
    if bug == "memory":
        bugs.execute(statement)  # what is loaded once has been
        before = resident(bugs.stack.keeper_pid())
        bugs.execute(*[statement] * 200)
        # 64 kB for each capital; another 200 calls of a sound keeper take nothing.
        return resident(bugs.stack.keeper_pid()) - before > 200 * 16
    (found,) = bugs.execute(statement)
    if bug == "endless":
        return found.sqlstate == "57014"
    if bug == "panic":
        if found.sqlstate is None:
            return False
        log = bugs.stack.logs / "keeper.log"
        until(lambda: "ended by a panic" in log.read_text(), "the keeper says that it panicked")
        return True
    bugs.restart("")
    (right,) = bugs.execute(statement)
    return found.sqlstate is None and right.sqlstate is None and found.rows != right.rows


def of_a_table(bugs, statement):
    """The statement over a table that has its operand."""
    (operand,) = re.findall(r"'.*'::enc_text", statement)
    with bugs.stack.connect_app() as app:
        app.execute("DROP TABLE IF EXISTS client.fake")
        app.execute("CREATE TABLE client.fake (name enc_text)")
        app.execute(f"INSERT INTO client.fake VALUES ({operand})")
    return statement.replace(operand, "name").replace(";", " FROM client.fake")


@pytest.mark.parametrize("bug", BUGS)
def test_from_keeper_to_keeper(bugs, bug, tmp_path):
    statement = BUGS[bug]
    assert shows(bugs, bug, statement)
    bugs.restart(bug)
    _, log, _ = logged(bugs, tmp_path, statement)
    calls = [line for line in log.read_text().splitlines() if line.startswith("call\t")]
    # The proxy sends a statement once again whose channel has ended.
    assert len(calls) == (2 if bug == "panic" else 1)
    fields = calls[0].split("\t")
    secret = NAMES[list(BUGS).index(bug)]
    assert fields[6:8] == ["client.person.name", secret]
    assert (fields[4] == "?") == (bug in ("panic", "endless"))
    rules, masked = tmp_path / "rules.toml", tmp_path / "masked.calls"
    rules.write_text(RULES)
    bugs.anonymise("log", log, "--rules", rules, "--out", masked, bug=bug)
    assert secret not in masked.read_text()
    assert bugs.anonymise("run", masked, "--times", "200" if bug == "memory" else "1", bug=bug)
    made = bugs.anonymise("statements", masked)
    assert not [name for name in NAMES if name in made]
    again, *others = [line for line in made.splitlines() if line.startswith("SELECT")]
    assert len(others) == len(calls) - 1
    assert shows(bugs, bug, again if bug != "memory" else of_a_table(bugs, again))


def test_batches_and_what_operands_are_from(bugs, tmp_path):
    """Rows by the batch, nested calls, constants; nothing of another client's session."""
    bugs.restart("")
    _, log, outcome = logged(
        bugs,
        tmp_path,
        "SELECT count(*) FROM client.person WHERE length(name || '!') > '4' AND name LIKE '%a%'",
    )
    assert outcome.rows == [("1",)]
    calls = [line.split("\t") for line in log.read_text().splitlines()[1:]]
    found = {(c[1], c[4], tuple(c[6::3])) for c in calls}
    name = "client.person.name"
    assert ("Concat", "value", (name, "-")) in found
    assert ("Length", "value", (name,)) in found
    assert ("Like", "true", (name, "-")) in found
    # What was computed has the name of what it was computed of.
    assert {c for c in found if c[0] == "Gt"} == {("Gt", "true", (name, "-"))}


def test_who_has_one_and_what_for(bugs, tmp_path):
    """A client who is no administrator ends his own log but begins no recording; a superuser
    begins neither; a log of calls is no recording: no clone is made beside it."""
    bugs.restart("")
    recorder, log, _ = logged(bugs, tmp_path, BUGS["memory"])
    assert log.stat().st_mode & 0o077 == 0
    refused = recorder.confide("start", *recorder.place(), "--key", tmp_path / "other.key")
    assert refused.returncode == 1
    assert "only an administrator records" in refused.stderr
    with bugs.stack.connect_dba() as dba:
        assert run(dba, "SELECT confide.record('start calls')").sqlstate == "42883"
    command = [bugs.stack.data.parent / "bin" / "confide", "clone", tmp_path / "clone"]
    command += ["--recording", recorder.directory, "--key", recorder.key]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "log of calls" in done.stderr
    assert not (tmp_path / "clone").exists()
    (file,) = recorder.directory.iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    altered = tmp_path / "altered"
    altered.mkdir()
    (altered / file.name).write_bytes(content)
    out = tmp_path / "again.calls"
    done = recorder.confide("calls", altered, "--key", recorder.key, "--out", out)
    assert done.returncode == 1
    assert "was altered" in done.stderr
    assert not out.exists()


def test_not_where_owners_are_not_known(bugs, tmp_path):
    """Without grants the keeper does not know what a client may see: no log of calls."""
    bugs.restart("", CONFIDE_KEEPER_REQUIRE_GRANTS="false")
    recorder = Recorder(bugs.stack, tmp_path)
    done = recorder.confide("start", *recorder.place(), "--key", recorder.key, "--calls")
    assert done.returncode == 1
    assert "columns have no owners here" in done.stderr
    assert not recorder.key.exists()

"""No value of a protected column is in a clone, its recording or core files, in any form.

Mechanism: values of all types are planted beside a recording, by literals, parameters and COPY, and
compared, sorted, computed with and searched in an index. A clone replays the statements; a process
of it, and the one that served the application, leave core files. Right: none of the values is in
any file. Bug: an administrator finds one. The values of a plain table are found, so the search
looks at the right bytes in the right forms.
"""

import base64
import os
import re
import resource
import signal
from pathlib import Path

import psycopg
import pytest
from clones import Clone
from needles import ROWS, all_types
from recordings import Recorder, statements
from results import run
from stack import ROOT, Stack
from waiting import until

PAGE = 4096
SENT = ("text", "bytea", "float8", "uuid", "date", "timestamp", "timestamptz", "time", "bool")
SECRETS = all_types("Planted", 1)
OPEN = all_types("Lying", 2)


def literal(value):
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'"
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'"


def columns(planted):
    """Names, types and values of a table's columns."""
    return [
        (name, each.type, value)
        for each in planted
        for name, value in zip(each.columns, each.values, strict=True)
    ]


def definition(table, planted, family):
    each = (f"{name} {family}{kind}" for name, kind, _ in columns(planted))
    return f"CREATE TABLE {table} (id int PRIMARY KEY, {', '.join(each)})"


def fill(app, table, planted):
    """The same row as literals, as parameters in both formats, and by COPY."""
    values = [value for _, _, value in columns(planted)]
    for row in range(1, 4):
        app.execute(f"INSERT INTO {table} VALUES ({row}, {', '.join(map(literal, values))})")
    for row, format_ in ((4, "%s"), (5, "%t"), (6, "%b")):
        # Of others there is no form in binary that every type takes.
        places = ["%s" if kind not in SENT else format_ for _, kind, _ in columns(planted)]
        app.execute(f"INSERT INTO {table} VALUES ({row}, {', '.join(places)})", values)
    with app.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for row in range(7, ROWS + 1):
            copy.write_row((row, *values))


def asked(planted):
    """Statements about the columns; each is answered."""
    yield "SELECT * FROM held ORDER BY id"
    for name, kind, value in columns(planted):
        if kind == "json":
            continue
        yield f"SELECT count(*) FROM held WHERE {name} = {literal(value)}"
        yield f"SELECT id FROM held ORDER BY {name}, id"
        yield f"SELECT {name}, count(*) FROM held GROUP BY {name}"
        if kind not in ("bool", "jsonb", "bytea", "uuid"):
            yield f"SELECT min({name}), max({name}) FROM held"
    yield "SELECT text_0 || 'after', length(text_0), upper(varchar_0) FROM held"
    yield "SELECT int8_0 - 1, numeric_0 * 2, float8_0 / 4, sum(int4_0) OVER () FROM held"
    yield "SELECT timestamp_0 + interval_0, date_0 + 1, sum(numeric_0) OVER () FROM held"
    yield "SELECT json_0 ->> 'k', jsonb_0 ->> 0 FROM held"
    yield f"SELECT id FROM held WHERE text_0 LIKE {literal(word(planted)[:9] + '%')}"


def word(planted):
    return next(value for name, _, value in columns(planted) if name == "text_0")


def dumped(pid, folder):
    """Ends a process as a crash does, with all of its memory that the kernel writes; gives the
    core file."""
    Path(f"/proc/{pid}/coredump_filter").write_text("0x3f")
    before = set(folder.glob("core*"))
    os.kill(pid, signal.SIGSEGV)
    until(lambda: not Path(f"/proc/{pid}").exists(), "the process has crashed")
    (core,) = set(folder.glob("core*")) - before
    return core


class Served:
    """What was recorded, and the files that an administrator has of it."""

    def __init__(self, stack, folder):
        self.stack, self.folder = stack, folder
        self.recorder = Recorder(stack, folder)
        self.app = stack.connect_app()
        self.app.execute(definition("held", SECRETS, "enc_"))
        self.app.execute(definition("lying", OPEN, ""))
        fill(self.app, "lying", OPEN)
        self.recorder.start("--database", "app")
        sizes = stack.log_sizes()
        fill(self.app, "held", SECRETS)
        self.app.execute("CREATE INDEX held_text ON held (text_0)")
        self.app.execute("CREATE INDEX held_int8 ON held (int8_0)")
        self.app.execute("ANALYZE held")
        self.app.execute("SET enable_seqscan = off")
        for text in asked(SECRETS):
            outcome = run(self.app, text)
            assert outcome.sqlstate is None, (text, outcome)
        self.texts = [t for t in statements(stack.logged_since(sizes)) if t.startswith("SELECT")]
        self.recorder.stop()
        self.clone = Clone(stack, self.recorder)
        self.answered, self.cores = [], []
        self.replay()
        self.crash()

    def replay(self):
        with self.clone.connect() as connection:
            outcomes = [run(connection, text) for text in self.texts]
            self.answered = [o for o in outcomes if o.sqlstate is None]
            self.clone_pid = connection.info.backend_pid
            self.cores.append(dumped(self.clone_pid, self.clone.directory / "pgdata"))

    def crash(self):
        """What serves the application in production."""
        with self.stack.connect_dba() as dba:
            query = "SELECT pid FROM pg_stat_activity WHERE usename = 'app' AND state = 'idle'"
            ((pid,),) = dba.execute(query).fetchall()
        self.cores.append(dumped(pid, self.stack.data))

    def contents(self):
        """Files without pages of zeros, and the recording's messages as its key opens them."""
        raw = self.folder / "raw"
        self.recorder.shown("--raw", raw)
        folders = [self.clone.directory, self.recorder.directory]
        files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
        for file in [*files, self.cores[1], raw]:
            yield file, dense(file)

    def remove(self):
        self.app.close()
        self.clone.remove()


def dense(file):
    """Its bytes, without pages of zeros: most of a core file is that."""
    zeros, parts = bytes(PAGE), []
    with file.open("rb") as opened:
        while part := opened.read(PAGE):
            if part != zeros:
                parts.append(part)
    return b"".join(parts)


@pytest.fixture(scope="module")
def served(stack, tmp_path_factory):
    if Path("/proc/sys/kernel/core_pattern").read_text().strip() != "core":
        pytest.skip("core files are not written beside the process")
    made = Stack(ROOT / ".run" / f"{stack.run.name}-planted")
    made.environment["CONFIDE_KEEPER_ADMINISTRATORS"] = "app"
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if hard == 0:
        pytest.skip("no process may leave a core file here (ulimit -Hc): sudo's limit")
    # The servers have it of who starts them.
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    made.up()
    served = Served(made, tmp_path_factory.mktemp("served"))
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    yield served
    served.remove()
    made.down("--remove")


def test_statements_are_replayed(served):
    """What is searched has been at work: most statements have been answered in the clone."""
    assert len(served.texts) == len(list(asked(SECRETS)))
    assert len(served.answered) > len(served.texts) / 2


def test_no_value_anywhere(served):
    found, looked, lying = [], 0, set()
    for file, content in served.contents():
        looked += len(content)
        for each in SECRETS:
            for form, needle in each.forms:
                if needle in content:
                    found.append(f"{each.name} as {form} in {file}")
        if served.clone.directory in file.parents and file not in served.cores:
            lying |= {each.name for each in OPEN for _, needle in each.forms if needle in content}
    assert not found, "\n".join(found)
    assert looked > 20_000_000
    assert lying == {each.name for each in OPEN}


def test_what_is_searched_has_the_statements(served):
    """Core files and the recording have the envelopes of what was asked."""
    envelopes = re.findall(r"cfd1\.[\w-]+", "".join(served.texts))
    bodies = [text.removeprefix("cfd1.") for text in envelopes]
    sealed = [base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)) for body in bodies]
    raw = (served.folder / "raw").read_bytes()
    assert [data for data in sealed if data in raw]
    for core in served.cores:
        content = dense(core)
        assert [text for text in envelopes if text.encode() in content], core


def test_a_log_of_calls_has_them(served, tmp_path):
    """The same search finds the values in the one log that has them, as its key opens it."""
    until(lambda: serves(served.stack), "the server is there again")
    recorder = Recorder(served.stack, tmp_path)
    recorder.start("--calls")
    with served.stack.connect_app() as app:
        app.execute("SELECT text_0 || 'after', int8_0 - 1, numeric_0 * 2 FROM held")
    recorder.stop()
    recorder.shown("--raw", tmp_path / "raw")
    content = (tmp_path / "raw").read_bytes()
    found = {each.name for each in SECRETS for _, needle in each.forms if needle in content}
    assert found >= {"text", "int8", "numeric"}
    sealed = b"".join(file.read_bytes() for file in recorder.directory.iterdir())
    assert not [each for each in SECRETS for _, needle in each.forms if needle in sealed]


def serves(stack):
    try:
        with stack.connect_app() as app:
            return run(app, "SELECT count(*) FROM held").rows
    except psycopg.OperationalError:
        return None

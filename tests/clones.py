"""Clones for tests and benchmarks: runs `confide clone` for a stack and a recording, as
PostgreSQL's operating system user, in a directory of its own."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg
from copies import owned
from stack import PG_BIN, as_user, free_port


class Clone:
    """A clone beside a replayer of what a recorder has recorded."""

    def __init__(self, stack, recorder):
        # The path of a socket is short, and PostgreSQL's user gets there.
        self.folder = Path(tempfile.mkdtemp(prefix="confide"))
        self.folder.chmod(0o755)
        self.stack, self.recorder, self.port = stack, recorder, free_port()
        self.directory = self.folder / "clone"
        shutil.copytree(recorder.directory, self.folder / "recording")
        shutil.copy(recorder.key, self.folder / "recording.key")
        for name in ("confide", "confide-replayer"):
            shutil.copy(stack.data.parent / "bin" / name, self.folder / name)
        owned("postgres", self.folder)
        made = self.make(self.directory, self.folder / "recording", self.port)
        assert made.returncode == 0, made.stderr + self.log("replayer") + self.log("postgres")
        assert "begins at 0/" in made.stdout

    def make(self, directory, recording, port):
        command = [self.folder / "confide", "clone", directory, "--dbname", self.stack.dba_url]
        command += ["--bindir", PG_BIN, "--port", str(port)]
        command += ["--recording", recording, "--key", self.folder / "recording.key"]
        return self.run(command)

    def run(self, command):
        return subprocess.run(
            as_user("postgres", command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            check=False,
        )

    def log(self, name):
        file = self.directory / f"{name}.log"
        return file.read_text() if file.exists() else ""

    @property
    def url(self):
        return f"host={self.directory} port={self.port} dbname=app user=postgres"

    def connect(self, *settings):
        connection = psycopg.connect(self.url, autocommit=True)
        for setting in settings:
            connection.execute(f"SET {setting}")
        return connection

    def stop(self):
        command = [self.folder / "confide", "clone", self.directory, "--stop"]
        return self.run([*command, "--bindir", PG_BIN])

    def remove(self):
        stopped = self.stop()
        shutil.rmtree(self.folder)
        assert stopped.returncode == 0, stopped.stderr


def shape(connection, text):
    """The nodes of a plan, without what they are told. Q15 makes a view first, and drops it."""
    if not text.lstrip().lower().startswith("select"):
        connection.execute(text)
        return []
    rows = connection.execute(f"EXPLAIN (COSTS OFF) {text}").fetchall()
    return [line for (line,) in rows if "->" in line or not line.startswith(" ")]


def is_envelope(text):
    return text is not None and text.startswith("cfd1.")


def same_rows(found, expected):
    """As many rows, the same plain values at the same places, and envelopes where the client had
    protected ones."""
    if found.sqlstate is not None or len(found.rows) != len(expected.rows):
        return False
    pairs = zip(found.rows, expected.rows, strict=True)
    cells = [cell for pair in pairs for cell in zip(*pair, strict=True)]
    return all(is_envelope(got) or got == wanted for got, wanted in cells)

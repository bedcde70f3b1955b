"""A proxy of a test's own with a pin (`confide pin`)."""

import contextlib
import subprocess

import psycopg
from stack import PG_BIN


class Pinned:
    """A proxy of the test's own with a pin of what is protected now."""

    def __init__(self, stack):
        self.stack = stack
        self.state = stack.data.parent
        self.file = self.state / "proxy" / "pin"
        self.process = None
        self.open = contextlib.ExitStack()

    def write(self, *more, check=True):
        command = [self.state / "bin" / "confide", "pin", self.file, "--bindir", PG_BIN]
        command += ["--dbname", self.stack.dba_url, *more]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if check:
            assert done.returncode == 0, done.stderr
            self.file.chmod(0o644)
        return done

    def start(self):
        proxy = self.stack.another_proxy(pin_file=str(self.file))
        self.process, self.url = self.open.enter_context(proxy)

    def connect(self, path=None):
        connection = psycopg.connect(self.url, autocommit=True)
        if path:
            connection.execute(f"SET search_path = {path}")
        return connection

    def stop(self):
        self.file.unlink(missing_ok=True)
        self.open.close()

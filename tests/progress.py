"""What is told of a run while it goes on: failures at once, whole, and tests that take long, with
what all processes do. So a run that is ended from outside has named what it waited for.

Only for the process that prints; pytest-xdist gives it the reports of its workers. Without
workers nothing is told of long tests: pytest captures what is written while a test runs."""

import threading
import time
from contextlib import suppress
from pathlib import Path

LONG = 300  # seconds


class Progress:
    def __init__(self, terminal):
        self.terminal = terminal
        self.running: dict[str, float] = {}  # since when
        self.ended = threading.Event()
        threading.Thread(target=self.watch, daemon=True).start()

    def say(self, text: str) -> None:
        self.terminal.ensure_newline()
        self.terminal.write_line(text)
        self.terminal.flush()

    def pytest_runtest_logstart(self, nodeid):
        self.running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid):
        self.running.pop(nodeid, None)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.say(f"FAILED {report.nodeid} ({report.when})\n{report.longreprtext}")

    def pytest_sessionfinish(self):
        self.ended.set()

    def watch(self) -> None:
        told: dict[str, int] = {}
        while not self.ended.wait(1):
            for nodeid, since in list(self.running.items()):
                times = int((time.monotonic() - since) / LONG)
                if times > told.get(nodeid, 0):
                    told[nodeid] = times
                    self.say(f"{nodeid}: not ended after {times * LONG} s\n{processes()}")


def processes() -> str:
    """All processes but the kernel's: what each waits for in the kernel, and its arguments."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            arguments = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("latin-1")
            waits = (process / "wchan").read_text()
            if arguments:
                lines.append(f"{process.name:>8} {waits:24.24} {arguments}")
    return "\n".join(line[:160] for line in lines)

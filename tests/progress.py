"""What is told of a run while it goes on: failures at once, whole, and tests that take long, with
what all processes do. So a run that is ended from outside has named what it waited for.

Only for the process that prints; pytest-xdist gives it the reports of its workers."""

import subprocess
import threading
import time

LONG = 300  # seconds


class Progress:
    def __init__(self, terminal):
        self.terminal = terminal
        self.told: dict[str, float] = {}  # when a test that runs began, or was told last
        self.ended = threading.Event()
        threading.Thread(target=self.watch, daemon=True).start()

    def say(self, text: str) -> None:
        self.terminal.ensure_newline()
        self.terminal.write_line(text)
        self.terminal.flush()

    def pytest_runtest_logstart(self, nodeid):
        self.told[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid):
        self.told.pop(nodeid, None)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.say(f"FAILED {report.nodeid} ({report.when})\n{report.longreprtext}")

    def pytest_sessionfinish(self):
        self.ended.set()

    def watch(self) -> None:
        while not self.ended.wait(1):
            for nodeid, told in list(self.told.items()):
                if time.monotonic() > told + LONG and self.told.pop(nodeid, None):
                    self.told[nodeid] = time.monotonic()
                    self.say(f"{nodeid}: not ended after {LONG} s\n{processes()}")


def processes() -> str:
    """All processes but the kernel's, and what each waits for there."""
    command = ["ps", "--ppid", "2", "-p", "2", "--deselect", "-o", "pid,etimes,stat,wchan:20,args"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout

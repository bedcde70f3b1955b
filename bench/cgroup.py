"""A group of processes with a limit on their memory (cgroup v1, which docs of Linux call the
memory controller). Only root may make one; where that is not so, or there is no cgroup v1,
`make` says why and gives none.

Invariant: this process is back in its own group, and the group is gone, at the end.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup/memory")
NO_LIMIT = -1


class Group:
    def __init__(self, path: Path):
        self.path = path
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = next(line for line in lines if line.split(":")[1] == "memory")
        self.home = ROOT / own.split(":", 2)[2].lstrip("/")

    def read(self, name: str) -> int:
        return int((self.path / f"memory.{name}").read_text())

    def write(self, name: str, value: int) -> None:
        (self.path / f"memory.{name}").write_text(f"{value}\n")

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """What is started meanwhile is in the group, and stays there."""
        pid = f"{os.getpid()}\n"
        (self.path / "cgroup.procs").write_text(pid)
        try:
            yield
        finally:
            (self.home / "cgroup.procs").write_text(pid)

    def set_limit(self, size: int) -> None:
        self.write("limit_in_bytes", size)
        self.write("max_usage_in_bytes", 0)

    def unlimit(self) -> None:
        self.write("limit_in_bytes", NO_LIMIT)

    def limit(self) -> int:
        return self.read("limit_in_bytes")

    def peak(self) -> int:
        """With what the system holds of its files."""
        return self.read("max_usage_in_bytes")

    def anonymous(self) -> int:
        """Bytes that are no file's."""
        return self.fields("stat")["rss"]

    def kills(self) -> int:
        return self.fields("oom_control")["oom_kill"]

    def fields(self, name: str) -> dict[str, int]:
        lines = (self.path / f"memory.{name}").read_text().splitlines()
        return {key: int(value) for key, value in (line.split() for line in lines)}


@contextlib.contextmanager
def make(name: str) -> Iterator[tuple[Group | None, str]]:
    """A group without a limit, or why there is none."""
    path = ROOT / name
    if not (ROOT / "memory.limit_in_bytes").exists():
        yield None, f"no cgroup v1 at {ROOT}, memory_budget alone"
        return
    try:
        path.mkdir()
    except OSError as error:
        yield None, f"not permitted ({error.strerror}), memory_budget alone"
        return
    group = Group(path)
    try:
        yield group, ""
    finally:
        group.unlimit()
        remove(group)


def remove(group: Group) -> None:
    """Whoever is still in it goes where we are."""
    for _ in range(50):
        for pid in (group.path / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (group.home / "cgroup.procs").write_text(pid)
        try:
            group.path.rmdir()
            return
        except OSError:
            time.sleep(0.1)

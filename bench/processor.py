"""Processor time of a stack's servers, from /proc: what a measurement took, whatever else the
machine did meanwhile.

A waiting backend or channel polls for a while, and that counts, too. Times of processes that have
ended are in their parents' in steps of 10 ms: measurements of a second or more are meant.
"""

import os
from pathlib import Path

TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


def _ticks(pid: int, children: bool = False) -> float:
    """Milliseconds that a process has had, with threads that have ended; or its ended children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = fields[13:15] if children else fields[11:13]
    return sum(int(field) for field in own) * TICK_MS


def _children(pid: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _writer(keeper: int) -> float:
    """Milliseconds of the keeper's thread that writes recordings."""
    for task in Path(f"/proc/{keeper}/task").iterdir():
        try:
            if (task / "comm").read_text().strip() == "recorder":
                return float((task / "schedstat").read_text().split()[0]) / 1e6
        except (FileNotFoundError, ProcessLookupError):
            continue
    return 0.0


class Processor:
    """Milliseconds that PostgreSQL and the keeper had the processor: for statements, and to write
    recordings."""

    def __init__(self, stack):
        self.keeper, self.postmaster = stack.keeper_pid(), stack.postmaster_pid()

    def read(self) -> dict[str, float]:
        writer = _writer(self.keeper)
        server = _ticks(self.postmaster, children=True)
        server += sum(_ticks(pid) for pid in _children(self.postmaster))
        return {"statements": server + _ticks(self.keeper) - writer, "writer": writer}

    def since(self, before: dict[str, float]) -> dict[str, float]:
        return {name: spent - before[name] for name, spent in self.read().items()}

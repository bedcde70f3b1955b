"""Finds where a suite's results differ from those of the plain server, and compares with the list
of allowed differences.

An entry of the list is a line `suite/test side lines reason`: on that side (`extension`, that is
directly to the server; `proxy`; or `both`) so many lines of the test's result differ. The list is
short, and each of its entries must occur.
"""

import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from postgres_suites import Results, Suite

LIST = Path(__file__).with_name("differences")
SIDES = ("extension", "proxy")
MOST = 10


@dataclass(frozen=True, order=True)
class Difference:
    suite: str
    test: str
    side: str
    lines: int


def allowed() -> dict[Difference, str]:
    """Each with its reason."""
    known = {}
    for line in LIST.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        path, side, lines, reason = line.split(maxsplit=3)
        suite, test = path.split("/")
        for one in SIDES if side == "both" else (side,):
            known[Difference(suite, test, one, int(lines))] = reason
    return known


def entries() -> int:
    lines = LIST.read_text().splitlines()
    return sum(1 for line in lines if line and not line.startswith("#"))


def compare(
    suite: Suite, side: str, tests: list[str], plain: Results, other: Results, report: Path
) -> set[Difference]:
    """What differs; for a person to read, the lines go to a file."""
    found = set()
    with report.open("w", errors="surrogateescape") as file:
        for test in tests:
            lines = differing(plain.folder / f"{test}.out", other.folder / f"{test}.out")
            if lines:
                file.write(f"=== {suite.name}/{test}\n" + "".join(lines) + "\n")
                found.add(Difference(suite.name, test, side, other_lines(lines[2:])))
    return found


def other_lines(diff: list[str]) -> int:
    """How many lines only one of the two has; those that stand elsewhere do not count."""
    only = [Counter(line[1:] for line in diff if line.startswith(sign)) for sign in "-+"]
    return sum(((only[0] - only[1]) + (only[1] - only[0])).values())


def differing(a: Path, b: Path) -> list[str]:
    """As `diff -U3` prints it; the file that is not there is empty."""
    files = [file if file.exists() else Path("/dev/null") for file in (a, b)]
    done = subprocess.run(
        ["diff", "-a", "-U3", *files],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="surrogateescape",
    )
    return done.stdout.splitlines(keepends=True)

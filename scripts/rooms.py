#!/usr/bin/env python3
"""The extension's rooms: which folder may use which.

A folder stands on a floor; its files include files of their own folder and of floors
below. What is declared in a header is defined in the header's folder, so calls run as
includes do. Says each line that breaks this, with what it breaks.

Does not look at PostgreSQL's headers, nor at what is inside functions.

Invariant: a folder that is not in the table is an error, not an exception.
"""

import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "extension" / "src"

# From the ground up.
FLOORS = [
    "generated",
    "compat",
    "wire",
    "session",
    "wal",
    "known",
    "order",
    "value",
    "ops",
    "cell",
    "soft",
    "program",
    "batch",
    "plan",
    "index",
    "result",
    "gc",
    "ledger",
    "tableam",
    "node/scan",
    "node/sort",
    "node/aggregate",
    "node/promote",
    "node/tokens",
    "node/lookup",
    "schema",
    "hooks",
]

INCLUDE = re.compile(r'\s*#\s*include\s+"([^"]+)"')
DECLARED = re.compile(r"^extern\b[^;{]*?\b(cfd_\w+)\s*\(", re.MULTILINE)
DEFINED = re.compile(r"^(cfd_\w+)\(", re.MULTILINE)
STATIC = re.compile(r"^static [^;=\n]*\n(\w+)\(", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def floor(path):
    """The floor of a file, or None."""
    folder = path.parent.relative_to(SOURCE).as_posix()
    return FLOORS.index(folder) if folder in FLOORS else None


def included(path, name):
    """The file of ours that an include means, or None."""
    for place in (SOURCE / name, path.parent / name):
        if place.is_file():
            return place.resolve()
    return None


def upward_includes(path):
    """Includes of a file that lead up."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        target = included(path, match.group(1)) if match else None
        if target and target.parent != path.parent and floor(target) >= floor(path):
            yield f"{path}:{number}: includes {match.group(1)}, which is above it"


def defined_elsewhere(files):
    """Functions that a header declares and another folder defines."""
    homes = {}
    for path in files:
        if path.suffix == ".c":
            for name in DEFINED.findall(path.read_text()):
                homes.setdefault(name, path)
    for path in files:
        for name in DECLARED.findall(COMMENT.sub("", path.read_text())):
            home = homes.get(name)
            if path.suffix == ".c" and name != "cfd_recovery_main":
                yield f"{path}: declares {name} itself, instead of including its header"
            elif home and home.parent != path.parent:
                yield f"{path}: declares {name}, which {home} defines"


def recurring_names(files):
    """Static functions of one name in several files: a log or a profile cannot tell them apart."""
    homes = {}
    for path in files:
        if path.suffix == ".c":
            for name in STATIC.findall(path.read_text()):
                homes.setdefault(name, []).append(path.relative_to(SOURCE).as_posix())
    for name, places in sorted(homes.items()):
        if len(places) > 1:
            yield f"{name}: static in {', '.join(places)}; give it the file's prefix"


def main():
    files = sorted([*SOURCE.glob("**/*.c"), *SOURCE.glob("**/*.h")])
    faults = [f"{path}: its folder has no floor" for path in files if floor(path) is None]
    if not faults:
        for path in files:
            faults += upward_includes(path)
        faults += defined_elsewhere(files)
        faults += recurring_names(files)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

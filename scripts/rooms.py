#!/usr/bin/env python3
"""The layers of the extension: which folder may use which.

Each folder is in a layer. Its files include files of their own folder and of lower layers. Whatever
a header declares is defined in the header's folder, so calls follow the includes. Prints each line
that violates this, and the rule.

Ignores PostgreSQL's headers, and the bodies of functions.

Invariant: a folder that is not in the table is an error.
"""

import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "extension" / "src"

# The lowest layer first.
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
    "switch",
    "program",
    "batch",
    "plan",
    "index",
    "result",
    "gc",
    "ledger",
    "rotate",
    "tableam",
    "node/scan",
    "node/sort",
    "node/aggregate",
    "node/promote",
    "node/tokens",
    "node/subquery",
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
    """The layer of a file, or None."""
    folder = path.parent.relative_to(SOURCE).as_posix()
    return FLOORS.index(folder) if folder in FLOORS else None


def included(path, name):
    """The extension's file that an include refers to, or None."""
    for place in (SOURCE / name, path.parent / name):
        if place.is_file():
            return place.resolve()
    return None


def upward_includes(path):
    """Includes from a higher layer."""
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
    """Static functions with the same name in several files, which logs and profiles cannot
    distinguish."""
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

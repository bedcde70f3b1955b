#!/usr/bin/env python3
"""Limits the length of files and functions: 600 lines, and 60.

A longer file of C or Rust must say why in its header, with the words "Long because"; a longer
function, in the comment above it.

Ignores generated files, and functions of tests, whose tables of cases are long.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES = 600
FUNCTION_LINES = 60
REASON = "Long because"
HEADER_LINES = 40
SKIPPED = {"examples", "generated"}

RUST = re.compile(
    r"^(\s*)(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?(?:unsafe )?(?:extern \"C\" )?fn (\w+)"
)
C = re.compile(r"^(\w+)\(")


def sources():
    listed = subprocess.run(
        ["git", "ls-files", "crates", "bench/driver", "extension/src"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    for name in listed:
        path = Path(name)
        left_out = SKIPPED & {*path.parts, path.stem}
        if path.suffix in (".rs", ".c", ".h") and not left_out and (ROOT / path).is_file():
            yield path


def functions(path, lines):
    """Name, first and last line of each function, from 0 on."""
    rust = path.suffix == ".rs"
    for at, line in enumerate(lines):
        if rust and line.startswith("mod tests {"):
            return
        match = (RUST if rust else C).match(line)
        if not match or line.rstrip().endswith(";"):
            continue
        name, indent = (match.group(2), match.group(1)) if rust else (match.group(1), "")
        for end in range(at, len(lines)):
            if lines[end].rstrip() == indent + "}":
                yield name, at, end
                break
            if not rust and end > at and lines[end] == "":
                break


def comment_above(lines, at):
    start = at
    while start > 0 and lines[start - 1].strip() and lines[start - 1].rstrip() != "}":
        start -= 1
    return "\n".join(lines[start:at])


def faults_of(path):
    lines = (ROOT / path).read_text().splitlines()
    found = {}
    if len(lines) > FILE_LINES and REASON not in "\n".join(lines[:HEADER_LINES]):
        found[str(path)] = len(lines)
    code = [] if "tests" in path.parts else functions(path, lines)
    for name, at, end in code:
        length = end - at + 1
        if length > FUNCTION_LINES and REASON not in comment_above(lines, at):
            key = f"{path} {name}"
            found[key] = max(length, found.get(key, 0))
    return found


def main():
    found = {}
    for path in sources():
        found.update(faults_of(path))
    faults = [f"{key}: {n} lines" for key, n in sorted(found.items())]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

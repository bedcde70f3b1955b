#!/usr/bin/env python3
"""Checks that the tests named in the docs, as `path::name` in backticks, exist, and that the tables
of docs/testing.md have each number, with a test.

Does not check whether a test shows what the page says; this is up to the author.

Invariant: a page without its table is an error.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
TABLE = ROOT / "docs" / "testing.md"
FOUND = range(1, 19)

TEST = re.compile(r"`([\w/.]+\.(?:py|rs))::(\w+)`")
ROW = re.compile(r"^\| (\d+) \|(.*)", re.MULTILINE)


def exists(path, name):
    file = ROOT / path
    word = "def" if path.endswith(".py") else "fn"
    return file.is_file() and re.search(rf"^\s*{word} {name}\(", file.read_text(), re.MULTILINE)


def faults():
    for page in PAGES:
        for path, name in TEST.findall(page.read_text()):
            if not exists(path, name):
                yield f"{page.relative_to(ROOT)}: there is no test {path}::{name}"
    rows = {int(number): rest for number, rest in ROW.findall(TABLE.read_text())}
    for number in FOUND:
        if not TEST.search(rows.get(number, "")):
            yield f"{TABLE.relative_to(ROOT)}: no test for {number}"


def main():
    found = list(faults())
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks the paths of a value and of a qual through the files in docs/architecture.md.

A list is between `<!-- way: at most N -->` and `<!-- end of way -->`. Each name of a source file in
backticks is a file below extension/src or crates. Prints each file that does not exist, and each
path that is too long.

Does not check whether a path is complete; this is up to the author.

Invariant: a page without such lists is an error.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PLACES = [ROOT / "extension" / "src", ROOT / "crates"]

WAY = re.compile(r"<!-- way: at most (\d+) -->\n(.*?)<!-- end of way -->", re.DOTALL)
FILE = re.compile(r"`([\w/]+\.(?:c|h|rs))`")


def faults(text):
    ways = WAY.findall(text)
    if not ways or len(ways) != text.count("<!-- way:"):
        yield "no ways, or one without an end"
    for limit, body in ways:
        files = sorted(set(FILE.findall(body)))
        for name in files:
            if not any((place / name).is_file() for place in PLACES):
                yield f"{name} is on a way, and not there"
        if not 0 < len(files) <= int(limit):
            yield f"a way has {len(files)} files, at most {limit}: {', '.join(files)}"


def main():
    found = list(faults(PAGE.read_text()))
    for fault in found:
        print(f"{PAGE.relative_to(ROOT)}: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The trusted code: lines of Confide's own crates that are linked into the keeper and the proxy,
their `unsafe` blocks, and the number of other crates.

Counts lines of code, without blank lines, comments, and tests at the end of a file. C code within
other crates is not counted; the crates are. The operating systems of both machines are trusted,
too, and whatever isolates the keeper's (docs/attestation.md).
"""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OWN = re.compile(r"^(\S+) v\S+ \((.*)\)")


def tree(crate):
    """The crates linked into one, by cargo's names, including itself."""
    unified = ("CARGO_UNSTABLE_FEATURE_UNIFICATION", "CARGO_RESOLVER_FEATURE_UNIFICATION")
    environment = {name: value for name, value in os.environ.items() if name not in unified}
    command = ["cargo", "tree", "--locked", "-p", crate, "-e", "normal", "--prefix", "none"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return {
        line.removesuffix(" (*)").removesuffix(" (proc-macro)")
        for line in done.stdout.split("\n")
        if line
    }


def code(file):
    """The lines of a file that are compiled into the program."""
    text = file.read_text().split("#[cfg(test)]\nmod tests")[0]
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("//")]


def counted(crate):
    """Lines of our own crates, `unsafe` blocks, other crates."""
    own, others = {}, 0
    for line in tree(crate):
        found = OWN.match(line)
        if not found:
            others += 1
            continue
        files = [f for f in (Path(found[2]) / "src").rglob("*.rs") if f.name != "tests.rs"]
        lines = [line for file in files for line in code(file)]
        own[found[1]] = (len(lines), sum("unsafe {" in line for line in lines))
    return own, others


def main():
    for crate, what in (("keeper", "the keeper"), ("proxy", "the proxy, at the client's side")):
        own, others = counted(crate)
        lines, unsafe = (sum(column) for column in zip(*own.values(), strict=True))
        print(f"{what}: {lines} lines in {len(own)} crates, {unsafe} blocks of unsafe, ", end="")
        print(f"{others} crates of others")
        for name, (lines, unsafe) in sorted(own.items(), key=lambda item: -item[1][0]):
            print(f"  {name:12} {lines:6}" + (f"  {unsafe} unsafe" if unsafe else ""))


if __name__ == "__main__":
    main()

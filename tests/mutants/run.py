"""Takes out one defence after the other and demands that its test fails.

A mutant is a search and a replacement in one file (defences/*.toml), and the test that must
notice. Everything happens in a private copy below .run/mutants: the tree, its target
directory, and of PostgreSQL what the extension is installed into (root's in /var/lib/confide).
First each test must pass in the clean copy, once; then each mutant must build, and its test must
fail by itself: an error in building, or in what a test needs, counts for nothing.

A text that is not found exactly once is stale: an error, before anything is run.

    run.py [--only WORD]... [--missing] [--check] [--list] [--trust-clean] [--publish]
"""

import argparse
import dataclasses
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = Path(os.environ.get("CONFIDE_MUTANTS", ROOT / ".run" / "mutants"))
TREE = HOME / "tree"
TARGET = HOME / "target"
# Root's copy of PostgreSQL is where its own user can reach it.
POSTGRES = (
    Path(f"/var/lib/confide/mutants-{hashlib.sha256(bytes(HOME)).hexdigest()[:10]}/postgres")
    if os.geteuid() == 0
    else HOME / "postgres"
)
PAGE = ROOT / "docs" / "reliability.md"
MARK = re.compile(r"(<!-- mutants: [^\n]*-->\n).*?(<!-- end of mutants -->)", re.DOTALL)
PG_CONFIG = os.environ.get("PG_CONFIG", "/usr/lib/postgresql/15/bin/pg_config")
TEST_SECONDS = float(os.environ.get("CONFIDE_MUTANT_SECONDS", "150"))  # more on a busy machine
BUILD_SECONDS = 3600
# Of PostgreSQL: its programs, libraries, other files, and the headers that some tests compile with.
DIRECTORIES = ("bindir", "pkglibdir", "sharedir", "includedir-server")


@dataclasses.dataclass
class Mutant:
    list: str
    defence: str
    file: str
    old: str
    new: str
    test: str
    also: list[dict] = dataclasses.field(default_factory=list)  # more of file, old, new

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        rest = [(c.get("file", self.file), c["old"], c["new"]) for c in self.also]
        return [(self.file, self.old, self.new), *rest]

    @property
    def cargo(self) -> bool:
        return self.test.startswith("cargo ")

    @property
    def in_extension(self) -> bool:
        return self.file.startswith("extension/")


class Broken(Exception):
    """Neither noticed nor missed: something else is wrong."""


def read_lists() -> list[Mutant]:
    found = []
    for path in sorted((Path(__file__).parent / "defences").glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            found.append(Mutant(list=path.stem, **entry))
    return found


def stale(mutants: list[Mutant], tree: Path) -> list[str]:
    wrong = []
    for m in mutants:
        for file, old, _ in m.changes:
            path = tree / file
            count = path.read_text().count(old) if path.exists() else 0
            if count != 1:
                wrong.append(f"{m.list}: {m.defence}: found {count} times in {file}")
    return wrong


# ---------- the private copy ----------


def run(command: list, seconds: float, env: dict) -> subprocess.CompletedProcess:
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=TREE,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        # What a test has started stops when the next stack starts (stack.py).
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, said)


def copy_tree() -> None:
    """What git knows or would add. Files that are the same keep their times, for cargo."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    wanted = {name for name in names if name and (ROOT / name).is_file()}
    for name in wanted:
        source, to = ROOT / name, TREE / name
        if not to.exists() or to.read_bytes() != source.read_bytes():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, to)
    for path in [*TREE.glob("crates/**/*.rs"), *TREE.glob("extension/src/**/*.[ch]")]:
        if str(path.relative_to(TREE)) not in wanted:
            path.unlink()
    if not (TREE / ".venv").exists():
        (TREE / ".venv").symlink_to((ROOT / ".venv").resolve())
    if not TARGET.exists() and (ROOT / "target").exists():
        # Compiled dependencies are the same; hard links cost nothing, but what cargo
        # writes in place must not be shared.
        subprocess.run(["cp", "-al", ROOT / "target", TARGET], check=True)
        for prints in TARGET.glob("*/.fingerprint"):
            shutil.rmtree(prints)
            shutil.copytree(ROOT / "target" / prints.relative_to(TARGET), prints)


def pg_directory(what: str) -> Path:
    done = subprocess.run([PG_CONFIG, what], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def copy_postgres() -> Path:
    """PostgreSQL finds its files by their place beside its programs; gives the copy's pg_config."""
    places = [pg_directory(f"--{what}") for what in DIRECTORIES]
    common = Path(os.path.commonpath(places))
    for place in places:
        to = POSTGRES / place.relative_to(common)
        if not to.exists():
            shutil.copytree(place, to, symlinks=False)
    return POSTGRES / places[0].relative_to(common) / "pg_config"


class Workshop:
    """Builds and tests the copy."""

    def __init__(self, mutants: list[Mutant]):
        TREE.mkdir(parents=True, exist_ok=True)
        copy_tree()
        self.environment = {
            **os.environ,
            "CARGO_TARGET_DIR": str(TARGET),
            "CARGO_INCREMENTAL": "1",
            "CONFIDE_QUIET": "1",
            "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",  # what one mutant failed is not another's
        }
        if any(not m.cargo for m in mutants):
            self.environment["PG_CONFIG"] = str(copy_postgres())
        self.changes_programs = any(not m.cargo and not m.in_extension for m in mutants)

    def build_binaries(self) -> None:
        """Those of the tree's own build serve while no mutant is in them."""
        if not self.changes_programs:
            for name in ("confide", "confide-keeper", "confide-proxy", "confide-replayer"):
                (TARGET / "release" / name).unlink(missing_ok=True)
                shutil.copy(ROOT / "target" / "release" / name, TARGET / "release")
            return
        command = "cargo build --quiet --release --bins -p keeper -p proxy -p cli -p replay".split()
        self.must(command, "the programs do not compile")

    def build_extension(self) -> None:
        self.must(
            ["make", "-s", "-C", "extension", "PG_CFLAGS=-std=gnu11 -w", f"PG_CONFIG={PG_CONFIG}"],
            "it does not compile",
        )
        config = self.environment["PG_CONFIG"]

        def directory(what: str) -> Path:
            asked = subprocess.run([config, what], capture_output=True, text=True, check=True)
            return Path(asked.stdout.strip())

        library, share = directory("--pkglibdir"), directory("--sharedir") / "extension"
        (library / "confide.so").unlink(missing_ok=True)
        shutil.copy(TREE / "extension" / "confide.so", library)
        scripts = [*(TREE / "extension").glob("*.sql"), TREE / "extension" / "confide.control"]
        for file in [*scripts, *(TREE / "extension" / "sql").glob("confide--*.sql")]:
            shutil.copy(file, share)

    def must(self, command: list, what: str) -> None:
        done = run(command, BUILD_SECONDS, env=self.environment)
        if done.returncode != 0:
            raise Broken(f"{what}:\n{done.stdout[-2000:]}")

    def build_for(self, test: str) -> None:
        """What the test needs; its own time begins when that is there."""
        if test.startswith("cargo "):
            command = self.cargo(test)
            end = command.index("--") if "--" in command else len(command)
            self.must([*command[:end], "--no-run"], "it does not compile")
        else:
            self.build_stack()

    def build_stack(self) -> None:
        """What has not changed since the last time costs little."""
        self.build_binaries()
        self.build_extension()

    def cargo(self, test: str) -> list[str]:
        """`cargo PACKAGE [target flags] -- NAME`."""
        package, *rest = test.split()[1:]
        return ["cargo", "test", "--quiet", "--release", "-p", package, *rest]

    def passes(self, test: str) -> tuple[bool, str]:
        """Whether a test passes, and what it said."""
        if test.startswith("cargo "):
            command = self.cargo(test)
        else:
            command = [".venv/bin/pytest", "-x", "-p", "no:cacheprovider", *shlex.split(test)[1:]]
        try:
            done = run(command, TEST_SECONDS, env=self.environment)
        except subprocess.TimeoutExpired:
            return False, "does not end"
        said = done.stdout
        if done.returncode == 0:
            if re.search(r"running 0 tests", said) and not re.search(r"running [1-9]", said):
                raise Broken(f"there is no such test: {test}")
            return True, said
        failed = re.search(
            r"^FAILED |panicked at|test result: FAILED|SIGABRT|SIGBUS", said, re.MULTILINE
        )
        if not failed:
            raise Broken(f"the test did not run:\n{said[-2000:]}")
        return False, said


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    before = {file: (TREE / file).read_text() for file, _, _ in mutant.changes}
    for file, old, new in mutant.changes:
        path = TREE / file
        path.write_text(path.read_text().replace(old, new))
    try:
        yield
    finally:
        for file, text in before.items():
            (TREE / file).write_text(text)


# ---------- the report ----------


def sentence(said: str) -> str:
    """The line in which a test says what is wrong."""
    for pattern in (r"^E +(\S.*)$", r"panicked at [^\n]*\n([^\n]+)", r"^FAILED .* - (.*)$"):
        found = re.search(pattern, said, re.MULTILINE)
        if found:
            return found[1].strip()[:100]
    return said.strip().splitlines()[-1][:100] if said.strip() else ""


def shown(test: str) -> str:
    words = shlex.split(test)
    if words[0] == "cargo":
        return f"{words[1]}: `{words[-1]}`"
    file = next(w for w in words if w.endswith(".py") or "::" in w)
    name = file.split("::")[1] if "::" in file else words[-1]
    return f"{Path(file.split('::')[0]).name}: `{name}`"


def published() -> dict[str, str]:
    """The rows of the table, by defence."""
    rows = MARK.search(PAGE.read_text())[0].splitlines()
    rows = [row for row in rows if row.startswith("| ")][1:]
    return {row.split(" | ")[0].removeprefix("| "): row for row in rows}


def publish(results: list[tuple[Mutant, str]]) -> None:
    """Rows of what was run are new, the others stay as long as there is such a mutant."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    rows = published()
    for m, verdict in results:
        where = commit if verdict == "noticed" else f"**{verdict}** {commit}"
        rows[m.defence] = f"| {m.defence} | `{m.file}` | {shown(m.test)} | {where} |"
    rows = [rows[m.defence] for m in read_lists() if m.defence in rows]
    head = ["| defence taken out | in | test that fails | shown at |", "|---|---|---|---|"]
    table = "\n".join([*head, *rows, ""])
    text = PAGE.read_text()
    PAGE.write_text(MARK.sub(lambda found: found[1] + table + found[2], text))


def examine(workshop: Workshop, mutant: Mutant) -> tuple[str, str]:
    try:
        with applied(mutant):
            workshop.build_for(mutant.test)
            passed, said = workshop.passes(mutant.test)
    except Broken as error:
        return "BROKEN", str(error)
    return ("MISSED", "its test passes") if passed else ("noticed", sentence(said))


def in_order(mutants: list[Mutant]) -> list[Mutant]:
    """Those of one crate one after the other, the extension's last."""
    return sorted(mutants, key=lambda m: (not m.cargo, m.in_extension, m.file))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], help="a word of list, file, test")
    parser.add_argument("--check", action="store_true", help="only whether all texts are found")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--trust-clean", action="store_true", help="tests pass without mutants")
    parser.add_argument("--missing", action="store_true", help="those without a row in the table")
    parser.add_argument("--publish", action="store_true", help="the table into docs/reliability.md")
    options = parser.parse_args()

    def wanted(m: Mutant) -> bool:
        text = f"{m.list} {m.defence} {m.file} {m.test}"
        shown_before = options.missing and "**" not in published().get(m.defence, "**")
        return all(word in text for word in options.only) and not shown_before

    mutants = in_order([m for m in read_lists() if wanted(m)])
    wrong = stale(mutants, ROOT)
    if wrong:
        print("stale:", *wrong, sep="\n  ")
        return 1
    if options.list or options.check:
        for m in mutants if options.list else []:
            print(f"{m.list:12} {m.defence}  [{m.test}]")
        return 0

    workshop = Workshop(mutants)
    if not options.trust_clean:
        for test in dict.fromkeys(m.test for m in mutants):
            workshop.build_for(test)
            passed, said = workshop.passes(test)
            if not passed:
                print(f"fails without any mutant: {test}\n{said[-3000:]}")
                return 1
        print("all tests pass without mutants", flush=True)
    results = []
    for m in mutants:
        began = time.monotonic()
        verdict, said = examine(workshop, m)
        results.append((m, verdict))
        if options.publish:  # as it comes: a run that is ended early has shown something
            publish(results[-1:])
        print(f"{verdict:8} {time.monotonic() - began:5.0f} s  {m.defence}: {said}", flush=True)
    bad = [m for m, verdict in results if verdict != "noticed"]
    print(f"{len(results) - len(bad)} of {len(results)} noticed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

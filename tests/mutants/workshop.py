"""Private copies of the tree, each with its own target directory, and its own copy of what the
extension is installed into of PostgreSQL. Mutants are built and tested there. Two of them do not
disturb each other.

The programs are optimised little (PROFILE): a build takes a fraction of the time of the one that is
shipped, and the tests that must fail are the same.
"""

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lists import Mutant

ROOT = Path(__file__).resolve().parent.parent.parent
HOME = Path(os.environ.get("CONFIDE_MUTANTS", ROOT / ".run" / "mutants"))
# Root's copy of PostgreSQL is where its own user can reach it.
POSTGRES = (
    Path(f"/var/lib/confide/mutants-{hashlib.sha256(bytes(HOME)).hexdigest()[:10]}")
    if os.geteuid() == 0
    else HOME
)
PG_CONFIG = os.environ.get("PG_CONFIG", "/usr/lib/postgresql/15/bin/pg_config")
# Of PostgreSQL: its programs, libraries, other files, and the headers that some tests compile with.
DIRECTORIES = ("bindir", "pkglibdir", "sharedir", "includedir-server")
PROFILE = {
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "CARGO_PROFILE_RELEASE_INCREMENTAL": "true",
}
# How long a test may take with a mutant, or MARGIN times what it takes without, if that is longer.
TEST_SECONDS = float(os.environ.get("CONFIDE_MUTANT_SECONDS", "150"))
MARGIN = 4
# How long it may take without any mutant.
CLEAN_SECONDS = 1800
BUILD_SECONDS = 3600


class Broken(Exception):
    """Neither noticed nor missed: something else is wrong."""


class Unending(Exception):
    """The test was ended at its limit."""


RUNNING: set[subprocess.Popen] = set()
ENDING = threading.Event()


def end_all() -> None:
    """Ends what still runs, with what it has started; how that ends says nothing of a mutant."""
    ENDING.set()
    for process in list(RUNNING):
        os.killpg(process.pid, signal.SIGKILL)


def files() -> list[str]:
    """What git knows or would add."""
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    return sorted(name for name in names if name and (ROOT / name).is_file())


def state_of_tree() -> str:
    """A hash of everything that decides how a test ends, which documents and lists do not."""
    digest = hashlib.sha256()
    for name in files():
        if not name.startswith(("docs/", "tests/mutants/")) and not name.endswith(".md"):
            digest.update(name.encode() + b"\0")
            digest.update(hashlib.sha256((ROOT / name).read_bytes()).digest())
    return digest.hexdigest()


class Workshop:
    """One copy; builds and tests in it."""

    def __init__(self, number: int):
        self.home = HOME / str(number)
        self.tree = self.home / "tree"
        self.postgres = POSTGRES / f"postgres-{number}"
        self.tree.mkdir(parents=True, exist_ok=True)
        self.copy_tree()
        self.environment = {
            **os.environ,
            **PROFILE,
            "CARGO_TARGET_DIR": str(self.home / "target"),
            "CONFIDE_QUIET": "1",
            "PG_CONFIG": str(self.copy_postgres()),
            "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",  # what one mutant failed is not another's
        }

    @property
    def built(self) -> bool:
        return (self.home / "target").exists()

    def take_build_of(self, other: "Workshop") -> None:
        """Cargo and make know what is compiled by times, which are kept."""
        for name in ("target", "tree/extension"):
            shutil.rmtree(self.home / name, ignore_errors=True)
            subprocess.run(["cp", "-a", other.home / name, self.home / name], check=True)

    def copy_tree(self) -> None:
        """Files that are the same keep their times, for cargo."""
        wanted = set(files())
        for name in wanted:
            source, to = ROOT / name, self.tree / name
            if not to.exists() or to.read_bytes() != source.read_bytes():
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, to)
        left = [*self.tree.glob("crates/**/*.rs"), *self.tree.glob("extension/src/**/*.[ch]")]
        for path in left:
            if str(path.relative_to(self.tree)) not in wanted:
                path.unlink()
        if not (self.tree / ".venv").exists():
            (self.tree / ".venv").symlink_to((ROOT / ".venv").resolve())

    def copy_postgres(self) -> Path:
        """PostgreSQL finds its files by their place beside its programs. Gives the pg_config."""
        places = [pg_directory(PG_CONFIG, f"--{what}") for what in DIRECTORIES]
        common = Path(os.path.commonpath(places))
        for place in places:
            to = self.postgres / place.relative_to(common)
            if not to.exists():
                shutil.copytree(place, to, symlinks=False)
        return self.postgres / places[0].relative_to(common) / "pg_config"

    # ---------- building ----------

    def build_for(self, test: str) -> None:
        """What the test needs; its own time begins when that is there. What has not changed since
        the last time costs little."""
        if test.startswith("cargo "):
            command = cargo(test)
            end = command.index("--") if "--" in command else len(command)
            self.must([*command[:end], "--no-run"], "it does not compile")
        else:
            programs = "cargo build --quiet --release --bins -p keeper -p proxy -p cli -p replay"
            self.must(programs.split(), "the programs do not compile")
            self.build_extension()

    def build_extension(self) -> None:
        self.must(
            ["make", "-s", "-C", "extension", "PG_CFLAGS=-std=gnu11 -w", f"PG_CONFIG={PG_CONFIG}"],
            "it does not compile",
        )
        config = self.environment["PG_CONFIG"]
        library = pg_directory(config, "--pkglibdir")
        share = pg_directory(config, "--sharedir") / "extension"
        extension = self.tree / "extension"
        (library / "confide.so").unlink(missing_ok=True)
        shutil.copy(extension / "confide.so", library)
        scripts = [*extension.glob("*.sql"), extension / "confide.control"]
        for file in [*scripts, *(extension / "sql").glob("confide--*.sql")]:
            shutil.copy(file, share)

    def must(self, command: list, what: str) -> None:
        code, said = self.run(command, BUILD_SECONDS)
        if code != 0:
            raise Broken(f"{what}:\n{said[-2000:]}")

    # ---------- testing ----------

    def passes(self, test: str, limit: float) -> tuple[bool, str]:
        """Whether a test passes, and what it said."""
        if test.startswith("cargo "):
            command = cargo(test)
        else:
            command = [".venv/bin/pytest", "-x", "-p", "no:cacheprovider", *shlex.split(test)[1:]]
        code, said = self.run(command, limit)
        if code == 0:
            if re.search(r"running 0 tests", said) and not re.search(r"running [1-9]", said):
                raise Broken(f"there is no such test: {test}")
            return True, said
        failed = re.search(
            r"^FAILED |panicked at|test result: FAILED|SIGABRT|SIGBUS", said, re.MULTILINE
        )
        if not failed:
            raise Broken(f"the test did not run:\n{said[-2000:]}")
        return False, said

    def clean(self, test: str, limit: float) -> float:
        """The seconds that a test takes without any mutant; it must pass."""
        self.build_for(test)
        began = time.monotonic()
        try:
            passed, said = self.passes(test, limit)
        except Unending:
            raise Broken(f"does not end within {limit:.0f} s without any mutant") from None
        if not passed:
            raise Broken(f"fails without any mutant:\n{said[-3000:]}")
        return time.monotonic() - began

    def examine(self, mutant: Mutant, known: float) -> tuple[str, str]:
        """The verdict, and why. `known` is what the test takes without a mutant. A test that does
        not end has noticed something only if it is not the machine that is slow: right afterwards
        it must pass without the mutant in half the time, or it gets more of it."""
        limit = max(TEST_SECONDS, MARGIN * known)
        try:
            while (passed := self.survives(mutant, limit)) is None:
                known = self.clean(mutant.test, CLEAN_SECONDS)
                if known <= limit / 2:
                    return "noticed", f"does not end within {limit:.0f} s"
                limit = MARGIN * known
        except Broken as error:
            return "BROKEN", str(error)
        return ("MISSED", "its test passes") if passed[0] else ("noticed", sentence(passed[1]))

    def survives(self, mutant: Mutant, limit: float) -> tuple[bool, str] | None:
        """Whether the test passes with the mutant, and what it said; None if it does not end."""
        with self.applied(mutant):
            self.build_for(mutant.test)
            try:
                return self.passes(mutant.test, limit)
            except Unending:
                return None

    @contextmanager
    def applied(self, mutant: Mutant) -> Iterator[None]:
        before = {file: (self.tree / file).read_text() for file, _, _ in mutant.changes}
        for file, old, new in mutant.changes:
            path = self.tree / file
            path.write_text(path.read_text().replace(old, new))
        try:
            yield
        finally:
            for file, text in before.items():
                (self.tree / file).write_text(text)

    def run(self, command: list, seconds: float) -> tuple[int, str]:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=self.tree,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        RUNNING.add(process)
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self.end_left()
            raise Unending from None
        finally:
            RUNNING.discard(process)
        if ENDING.is_set():
            raise Broken("the run was ended")
        return process.returncode, said

    def end_left(self) -> None:
        """Ends programs of this copy that a test has left behind: a backend that it had stopped
        would never end. The other programs of a stack end when the next one starts."""
        ours = (f"{self.home}/", f"{self.postgres}/")
        for program in Path("/proc").glob("[0-9]*/exe"):
            with suppress(OSError):
                if os.readlink(program).startswith(ours):
                    os.kill(int(program.parent.name), signal.SIGKILL)


def pg_directory(config: str, what: str) -> Path:
    done = subprocess.run([config, what], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def cargo(test: str) -> list[str]:
    """`cargo PACKAGE --lib|--bin NAME|--test NAME [-- NAME]`."""
    package, *rest = test.split()[1:]
    return ["cargo", "test", "--quiet", "--release", "-p", package, *rest]


def sentence(said: str) -> str:
    """The line in which a test says what is wrong."""
    for pattern in (r"^E +(\S.*)$", r"panicked at [^\n]*\n([^\n]+)", r"^FAILED .* - (.*)$"):
        found = re.search(pattern, said, re.MULTILINE)
        if found:
            return found[1].strip()[:100]
    return said.strip().splitlines()[-1][:100] if said.strip() else ""

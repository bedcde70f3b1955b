"""PostgreSQL's own test suites, from the distribution's source package.

The package is downloaded with the ordinary client from the machine's own sources, using a private
configuration. The version is the installed server's if it is available, otherwise the newest one.
The download stays below .run, so it is made once per machine.

Only the libraries that the suites load are built; the programs (pg_regress, isolationtester) are
those of the server's development package.
"""

import shutil
import subprocess
from pathlib import Path

from stack import PG_BIN, ROOT

PACKAGE = "postgresql-15"
CACHE = ROOT / ".run" / "postgres-source"
SUITES = ("src/test/regress", "src/test/isolation", "contrib/spi")
# What SQL of the regression suite loads.
LIBRARIES = {"regress": "src/test/regress", "autoinc": "contrib/spi", "refint": "contrib/spi"}
MAKEFILE = f"""MODULES = {" ".join(LIBRARIES)}
PG_CONFIG = {PG_BIN}/pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)
"""


class Unavailable(Exception):
    """The source package cannot be got from this machine's package sources."""


def source() -> Path:
    """The folder with `regress`, `isolation` and the libraries in `lib`."""
    done = CACHE / "ready"
    if not done.exists():
        shutil.rmtree(CACHE, ignore_errors=True)
        CACHE.mkdir(parents=True)
        unpack(download(CACHE / "apt"))
        shutil.rmtree(CACHE / "apt")
        build()
        done.touch()
    return CACHE


def download(place: Path) -> Path:
    """The original tar file."""
    client = Apt(place)
    client.run("update", check=False)  # of one source that does not answer others can do without
    shown = client.run("showsrc", PACKAGE, program="apt-cache", check=False)
    versions = [line.split()[1] for line in shown.splitlines() if line.startswith("Version:")]
    installed = output("dpkg-query", "-W", "-f", "${source:Version}", PACKAGE)
    versions.sort(key=lambda version: (version == installed, key(version)), reverse=True)
    for version in versions:
        client.run("source", "--download-only", f"{PACKAGE}={version}", check=False)
        if found := list(place.glob("*.orig.tar.*")):
            return found[0]
    raise Unavailable(f"{PACKAGE}: none of {versions} can be got")


def key(version: str) -> list[int]:
    return [int(part) for part in version.replace("-", ".").split(".") if part.isdigit()]


class Apt:
    """The package client with sources of source packages, and folders, of our own."""

    def __init__(self, place: Path):
        self.place = place
        for folder in ("sources", "lists/partial", "cache/archives/partial"):
            (place / folder).mkdir(parents=True)
        lines = []
        for file in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]:
            if not file.exists():
                continue
            text = file.read_text()
            if file.suffix == ".sources":
                types = [
                    "Types: deb-src" if line.startswith("Types:") else line
                    for line in text.splitlines()
                ]
                (place / "sources" / file.name).write_text("\n".join(types) + "\n")
            else:
                lines += [
                    line.replace("deb ", "deb-src ", 1)
                    for line in text.splitlines()
                    if line.startswith("deb ")
                ]
        (place / "sources.list").write_text("".join(f"{line}\n" for line in lines))
        settings = {
            "Dir::Etc::SourceList": place / "sources.list",
            "Dir::Etc::SourceParts": place / "sources",
            "Dir::State::Lists": place / "lists",
            "Dir::Cache": place / "cache",
            "APT::Sandbox::User": "",  # who cannot write into our folders
        }
        self.options = [word for k, v in settings.items() for word in ("-o", f"{k}={v}")]

    def run(self, *words: str, program: str = "apt-get", check: bool = True) -> str:
        return output(program, *self.options, "-q", *words, check=check, cwd=self.place)


def unpack(archive: Path) -> None:
    wanted = [f"*/{path}" for path in SUITES]
    output("tar", "-xf", archive, "--strip-components=1", "-C", CACHE, "--wildcards", *wanted)
    for path in ("regress", "isolation"):
        (CACHE / "src" / "test" / path).rename(CACHE / path)
    (CACHE / "lib").mkdir()
    for name, path in LIBRARIES.items():
        folder = CACHE / ("regress" if path.endswith("regress") else path)
        shutil.copy(folder / f"{name}.c", CACHE / "lib")


def build() -> None:
    (CACHE / "lib" / "Makefile").write_text(MAKEFILE)
    output("make", "-s", "-C", CACHE / "lib", "with_llvm=no")


def output(*command, check: bool = True, cwd: Path | None = None) -> str:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd,
    )
    assert not check or done.returncode == 0, f"{command[0]} failed:\n{done.stdout}"
    return done.stdout

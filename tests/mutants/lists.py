"""The mutants as they stand in defences/*.toml, and the order in which they are run."""

import dataclasses
import hashlib
import tomllib
from pathlib import Path

# What `cargo test` builds otherwise is every target of the package, and what is in documentation.
TARGETS = ("--lib", "--bin", "--test")


@dataclasses.dataclass(frozen=True)
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

    @property
    def key(self) -> str:
        """The same as long as change and test are."""
        return hashlib.sha256(repr((self.changes, self.test)).encode()).hexdigest()[:20]


def read_lists() -> list[Mutant]:
    found = []
    for path in sorted((Path(__file__).parent / "defences").glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["mutant"]:
            found.append(Mutant(list=path.stem, **entry))
    return found


def wrong(mutants: list[Mutant], tree: Path) -> list[str]:
    """Texts that are not found exactly once, and tests that name no target."""
    found = []
    for m in mutants:
        for file, old, _ in m.changes:
            path = tree / file
            count = path.read_text().count(old) if path.exists() else 0
            if count != 1:
                found.append(f"{m.list}: {m.defence}: found {count} times in {file}")
        if m.cargo and m.test.split()[2] not in TARGETS:
            found.append(f"{m.list}: {m.defence}: its test names none of {' '.join(TARGETS)}")
    return found


def in_order(mutants: list[Mutant]) -> list[Mutant]:
    """Those of one crate one after the other, the extension's last: taking one out and putting the
    one before back is one build."""
    return sorted(mutants, key=lambda m: (not m.cargo, m.in_extension, m.file, m.test))

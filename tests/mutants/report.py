"""What is known of mutants: the table in docs/reliability.md, and the state of a run that may go on
later (state.json beside the copies), which counts as long as the tree is the same."""

import json
import re
import shlex
import subprocess
import threading
from pathlib import Path

from lists import Mutant, read_lists
from workshop import HOME, ROOT, state_of_tree

PAGE = ROOT / "docs" / "reliability.md"
MARK = re.compile(r"(<!-- mutants: [^\n]*-->\n).*?(<!-- end of mutants -->)", re.DOTALL)


class State:
    """Seconds of each test that has passed without a mutant, and the mutants that were noticed."""

    def __init__(self, go_on: bool):
        self.path = HOME / "state.json"
        self.tree = state_of_tree()
        known = json.loads(self.path.read_text()) if go_on and self.path.exists() else {}
        if known.get("tree") != self.tree:
            known = {}
        self.clean: dict[str, float] = known.get("clean", {})
        self.noticed: list[str] = known.get("noticed", [])
        self.lock = threading.Lock()

    def passed(self, test: str, seconds: float) -> None:
        with self.lock:
            self.clean[test] = seconds
            self.save()

    def notices(self, mutant: Mutant) -> None:
        with self.lock:
            self.noticed.append(mutant.key)
            self.save()

    def save(self) -> None:
        new = self.path.with_suffix(".new")
        text = {"tree": self.tree, "clean": self.clean, "noticed": self.noticed}
        new.write_text(json.dumps(text, indent=1))
        new.replace(self.path)


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

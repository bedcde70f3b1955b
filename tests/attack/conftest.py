"""Counts the attacks: attempts, successes, and what the published profile allows.

An attempt is one variant of an attack, tried to its end. It succeeds if the attacker has learned or
changed what he wanted; `allowed` says why docs/security.md permits this. A test that is marked
`ten(n)` tries the attack of that number in `TEN`. `make attack` prints the totals, those of each of
the ten, and each allowed attempt with its reason.
"""

from collections.abc import Iterable

import pytest
from principals import three

__all__ = ["three"]

# The first ten attacks, as they were tried on a system that had no defences.
TEN = {
    1: "UPDATE emp SET pay = (SELECT pay FROM emp WHERE id = 1) WHERE id = 2: the victim's pay "
    "shows in the attacker's row",
    2: "a trigger, a row policy, a view put in place of a table, a default, that run INSERT INTO "
    "loot SELECT e.id, g FROM emp e JOIN generate_series(0, 9999) g ON e.pay = g in the next "
    "client's session; text letter by letter with substr(name, n, o) = chr(g)",
    3: "SELECT id, dense_rank() OVER (ORDER BY ok) FROM emp without any key",
    4: "CREATE ROLE spy SUPERUSER ..., then through the proxy: everything in clear",
    5: "an export envelope taken into any column of its type by anyone",
    6: "values swapped into a plain column come back from the application in the clear",
    7: "sessions joined with a token that any process of PostgreSQL can read, that never expire, "
    "that survive removal of the client's key",
    8: "recovery records: omit, repeat, splice, swap those of another keeper with the same root "
    "key; Checkpoint at 2^64-1",
    9: "what is declassified of a temporary (pay + 0) is not counted",
    10: "a backend that waits for a keeper under a B-tree page lock cannot be cancelled",
}
OTHERS = 0

COUNTED = pytest.StashKey[dict]()


def nothing() -> dict:
    """By number of the attack; plain types, which go from process to process."""
    numbers = [*TEN, OTHERS]
    return {
        "attempts": dict.fromkeys(numbers, 0),
        "failed": dict.fromkeys(numbers, 0),
        "allowed": [],
    }


class Attack:
    def __init__(self, counted: dict, number: int):
        self.counted, self.number = counted, number

    def attempt(self, name: str, succeeded: bool, allowed: str = "") -> None:
        """Counts an attempt; one that succeeds and is not allowed fails the test."""
        self.counted["attempts"][self.number] += 1
        if succeeded and allowed:
            self.counted["allowed"].append((self.number, f"{name}: {allowed}"))
        elif succeeded:
            self.counted["failed"][self.number] += 1
            pytest.fail(f"the attack succeeds: {name}", pytrace=False)


@pytest.fixture
def attack(pytestconfig, request):
    marker = request.node.get_closest_marker("ten")
    number = marker.args[0] if marker else OTHERS
    return Attack(pytestconfig.stash.setdefault(COUNTED, nothing()), number)


def pytest_sessionfinish(session):
    """With several pytest workers, each sends its counts to the process that prints them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["attacks"] = session.config.stash.get(COUNTED, nothing())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    counted = node.config.stash.setdefault(COUNTED, nothing())
    more = getattr(node, "workeroutput", {}).get("attacks", nothing())
    for what in "attempts", "failed":
        for number, count in more[what].items():
            counted[what][number] += count
    counted["allowed"] += [tuple(pair) for pair in more["allowed"]]


def line(counted: dict, numbers: Iterable[int]) -> str:
    numbers = list(numbers)
    attempts, failed = (sum(counted[w][n] for n in numbers) for w in ("attempts", "failed"))
    allowed = sum(number in numbers for number, _ in counted["allowed"])
    return f"{attempts} attempts, {failed} successes, {allowed} allowed"


def pytest_terminal_summary(terminalreporter, config):
    counted = config.stash.get(COUNTED, None)
    if not counted or not any(counted["attempts"].values()):
        return
    write = terminalreporter.write_line
    write(f"attacks: {line(counted, [*TEN, OTHERS])}")
    for number, words in TEN.items():
        write(f"  {number:2}. {words}: {line(counted, [number])}")
    write(f"  others: {line(counted, [OTHERS])}")
    for number, allowed in counted["allowed"]:
        write(f"  allowed ({number or 'others'}): {allowed}")

"""Counts the attacks: attempts, successes, and what the published profile allows.

An attempt is one variant of an attack, tried to its end. It succeeds if the attacker has learned or
changed what he wanted; `allowed` says why docs/security.md permits this. `make attack` prints the
totals, and each allowed attempt with its reason.
"""

import pytest
from principals import three

__all__ = ["three"]

COUNTED = pytest.StashKey[dict]()


def nothing() -> dict:
    return {"attempts": 0, "successes": 0, "allowed": []}


class Attack:
    def __init__(self, counted):
        self.counted = counted

    def attempt(self, name: str, succeeded: bool, allowed: str = "") -> None:
        """Counts an attempt; one that succeeds and is not allowed fails the test."""
        self.counted["attempts"] += 1
        if succeeded and allowed:
            self.counted["allowed"].append(f"{name}: {allowed}")
        elif succeeded:
            self.counted["successes"] += 1
            pytest.fail(f"the attack succeeds: {name}", pytrace=False)


@pytest.fixture
def attack(pytestconfig):
    return Attack(pytestconfig.stash.setdefault(COUNTED, nothing()))


def pytest_sessionfinish(session):
    """With several pytest workers, each sends its counts to the process that prints them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["attacks"] = session.config.stash.get(COUNTED, nothing())


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    counted = node.config.stash.setdefault(COUNTED, nothing())
    for name, more in getattr(node, "workeroutput", {}).get("attacks", {}).items():
        counted[name] += more


def pytest_terminal_summary(terminalreporter, config):
    counted = config.stash.get(COUNTED, None)
    if not counted or not counted["attempts"]:
        return
    attempts, successes = counted["attempts"], counted["successes"]
    line = f"attacks: {attempts} attempts, {successes} successes, {len(counted['allowed'])} allowed"
    terminalreporter.write_line(line)
    for allowed in counted["allowed"]:
        terminalreporter.write_line(f"  allowed: {allowed}")

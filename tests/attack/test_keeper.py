"""Attacks on the keeper itself, by whoever can send it messages and records: the keeper's own tests
in Rust, which need no PostgreSQL. Each counts as an attempt.

Mechanism: `cargo test` runs the named tests, and its list says how each ended. Right: each passes,
which means that its attack is refused. Bug: as each test says.
"""

import re
import subprocess

import pytest
from stack import ROOT

# They may have to be built first.
pytestmark = pytest.mark.timeout(3600)

SESSIONS = {
    "join with an invented pass, or an older one": "sessions::no_such_session",
    "go on with a session whose lease is over": "sessions::a_lease_that_is_over",
    "go on with a session whose client has left": "sessions::a_client_that_has_left",
    "go on with a session whose client's key was removed": "sessions::a_key_that_is_withdrawn",
    "keep a channel whose leader has gone": "sessions::a_leader_that_has_gone",
    "take all of the keeper's channels": "sessions::too_many_channels_of_a_session",
}
RECORDS = {
    "omit": "recovery::sweeps::records_that_are_left_out",
    "repeat, in another order": "recovery::old_records_change_nothing",
    "splice": "recovery::spliced::records_of_a_run_that_was_forgotten",
    "swap those of another keeper with the same root key": "recovery::records_of_another_store",
    "alter": "recovery::altered_record",
    "Checkpoint at 2^64-1": "recovery::a_checkpoint_at_the_end_of_time",
    "send them on a channel that is not the recovery worker's": "recovery::who_may_ask",
}
OTHERS = {
    "a grant of another session, altered, or in a value's place": "grants::whose_grants",
    "more than a grant says": "grants::only_what_is_granted",
    "each operation without a grant": "grants::every_operation",
    "a column's name given again": "grants::names_stay",
    "an export envelope without a ticket": "belonging::home_only",
    "a restore ticket used again, altered, of a stranger": "belonging::good_once",
    "take in what was sealed for delivery": "delivery::does_not_come_back",
    "take all memory by copies of the store": "recovery::copies::so_many",
}


@pytest.fixture(scope="module")
def ended():
    """How each test of the keeper ended that is named here."""
    names = [name for tests in (SESSIONS, RECORDS, OTHERS) for name in tests.values()]
    # As scripts/test builds them: with the features that the whole workspace has.
    command = ["cargo", "test", "--release", "--workspace", "--test", "it", "--", "--exact"]
    done = subprocess.run([*command, *names], cwd=ROOT, capture_output=True, text=True)
    found = dict(re.findall(r"^test (\S+) \.\.\. (\w+)$", done.stdout, re.MULTILINE))
    assert set(found) == set(names), done.stdout + done.stderr
    return found


def tried(attack, ended, tests):
    for name, test in tests.items():
        attack.attempt(f"{name} (`{test}`)", ended[test] != "ok")


@pytest.mark.ten(7)
def test_sessions(ended, attack):
    tried(attack, ended, SESSIONS)


@pytest.mark.ten(8)
def test_recovery_records(ended, attack):
    tried(attack, ended, RECORDS)


def test_others(ended, attack):
    tried(attack, ended, OTHERS)

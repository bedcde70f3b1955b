"""PostgreSQL's own regression and isolation suites have the same results on a database with the
extension, directly and through the proxy, as without it, except for a short list (`differences`).

Mechanism: each test's output is compared with that of a plain server of the same version on the
same machine. Bug: the extension changes how plain functions resolve, or the proxy refuses or
answers statements that do not concern it. `make compat-postgres` runs everything, with
`ONLY=regress-proxy` one suite and side; the short form runs quick tests.
"""

import contextlib
import os
import re
from dataclasses import replace

import psycopg
import pytest
from postgres_differences import MOST, SIDES, allowed, compare, entries
from postgres_source import Unavailable, source
from postgres_suites import (
    ISOLATION,
    MEMORY,
    POSTGRES,
    REGRESS,
    RUNS,
    SUITES,
    plain_server,
    run,
    stack_server,
)
from stack import ROOT, Stack
from waiting import until

FULL = bool(os.environ.get("CONFIDE_COMPAT"))
SHORT = {
    REGRESS.name: (
        "test_setup boolean text int4 strings numerology case delete namespace indexing create_type"
    ).split(),
    ISOLATION.name: (
        "read-only-anomaly insert-conflict-do-nothing multixact-no-deadlock intra-grant-inplace "
        # These two hang if an idle transaction of the proxy's holds a snapshot.
        "reindex-concurrently-toast detach-partition-concurrently-3"
    ).split(),
}
# Specs of the isolation suite stand for themselves, and print notices as they come: a difference
# that does not come again was one of time.
AGAIN = 2
# How often the full regression suite runs again at each server, by turns, to compare times. The
# isolation suite mostly waits, and the short form is too short.
ROUNDS = 2
REPORTS = ROOT / ".run" / "postgres-differences"


@pytest.fixture(scope="module")
def plain():
    """The plain server, and what gives its results of a suite, which is run for them once."""
    try:
        source()
    except Unavailable as why:
        if FULL:
            raise
        pytest.skip(str(why))
    results = {}
    with plain_server(MEMORY if FULL else RUNS) as server:
        yield (
            server,
            lambda suite: (
                results.get(suite) or results.setdefault(suite, run(suite, server, chosen(suite)))
            ),
        )


@pytest.fixture
def server(request, side):
    """A stack as PostgreSQL's suites expect one: nothing was done there before."""
    if not FULL:
        stack = request.getfixturevalue("stack")
        with by_password(stack):
            yield stack_server(stack, side == "proxy")
        return
    stack = Stack(ROOT / ".run" / f"compat-{os.getpid()}", POSTGRES, "none")
    stack.environment["CONFIDE_STATES"] = str(MEMORY)
    stack.environment["CONFIDE_PROXY_USERS"] = "*"  # the suites make roles, and connect as these
    stack.fresh()
    with by_password(stack):
        yield stack_server(stack, side == "proxy")
    stack.down("--remove")


@contextlib.contextmanager
def by_password(stack):
    """The suites come as the superuser, who otherwise needs no password at the server's socket, by
    which the proxy comes."""
    rules = stack.data / "pg_hba.conf"
    before = rules.read_text()
    suites = ",".join(suite.database for suite in SUITES)
    rules.write_text(f"local {suites} postgres scram-sha-256\n{before}")
    there = re.sub("/app$", f"/{REGRESS.database}", stack.dba_url)

    def asks() -> bool:
        try:
            psycopg.connect(there, password="wrong").close()
        except psycopg.OperationalError as error:
            return "password authentication failed" in str(error)
        return False

    def reload() -> None:
        with stack.connect_dba() as dba:
            dba.execute("SELECT pg_reload_conf()")

    reload()
    until(asks, "the superuser is asked for a password")
    try:
        yield
    finally:
        rules.write_text(before)
        reload()


def slower(expected, got) -> str:
    """The tests that take longest beyond what they take on the plain server."""
    more = {test: ms - expected.times.get(test, 0) for test, ms in got.times.items()}
    most = sorted(more, key=more.get, reverse=True)[:8]
    return ", ".join(f"{test} {more[test]:+}" for test in most)


def quickest(suite, tests, runs) -> list[float]:
    """For each server with its results: the seconds of its quickest round of some, by turns, since
    the machine's own speed changes. They write elsewhere: the results are still compared."""
    seconds = [[] for _ in runs]
    for _ in range(ROUNDS if FULL and suite is REGRESS else 0):
        for (server, _), taken in zip(runs, seconds, strict=True):
            beside = replace(server, folder=server.folder.with_name(f"{server.folder.name}-again"))
            taken.append(run(suite, beside, tests).seconds)
    return [min(taken or [first.seconds]) for taken, (_, first) in zip(seconds, runs, strict=True)]


def chosen(suite) -> list[str]:
    return suite.schedule() if FULL else SHORT[suite.name]


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_suite(suite, side, plain, server, report):
    without, results_without = plain
    expected, tests = results_without(suite), chosen(suite)
    assert set(expected.times) == set(tests), "the suite did not run to its end"
    got = run(suite, server, tests)
    REPORTS.mkdir(parents=True, exist_ok=True)
    path = REPORTS / f"{suite.name}-{side}.diff"
    found = compare(suite, side, tests, expected, got, path)
    for _ in range(AGAIN if suite is ISOLATION and found else 0):
        repeated = run(suite, server, sorted({d.test for d in found}))
        found &= compare(suite, side, sorted(repeated.times), expected, repeated, path)
    base, ours = quickest(suite, tests, [(without, expected), (server, got)])
    report(
        f"{suite.name} suite, {side}: {len(tests)} tests, {len(found)} differ, {ours:.1f} s "
        f"(plain {base:.1f} s, {ours / base:.2f} times; first round: {slower(expected, got)} ms)"
    )
    known = {d for d in allowed() if (d.suite, d.side) == (suite.name, side) and d.test in tests}
    new, gone = sorted(found - known), sorted(known - found)
    assert not new, f"{len(new)} unexpected differences, see {path}: {new}"
    assert not gone, f"these do not occur any more: {gone}"


def test_the_list_is_short():
    assert entries() <= MOST

"""Fixtures: one stack for all tests, connections of both sides, a schema for each test."""

import re
import shutil
import subprocess
import tempfile
import tomllib
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from leftovers import differences, reset, state
from progress import Progress
from stack import PG_BIN, Stack

STACK = pytest.StashKey[Stack]()
STATE = pytest.StashKey[Counter]()  # as the last file has left the stack


def pytest_sessionstart(session):
    plugins = session.config.pluginmanager
    if not hasattr(session.config, "workerinput"):
        plugins.register(Progress(plugins.get_plugin("terminalreporter")))


@pytest.fixture(scope="session")
def stack(request):
    stack = request.config.stash[STACK] = Stack()
    stack.fresh()
    request.config.stash[STATE] = state(stack)
    yield stack
    del request.config.stash[STACK]
    # After a failure, data and logs stay until the next run.
    stack.down(*([] if request.session.testsfailed else ["--remove"]))


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left(request, report):
    """Takes back what a file's tests have left, and tells what remains (tests/leftovers.py)."""
    yield
    stack = request.config.stash.get(STACK, None)
    if stack is None:
        return
    reset(stack)
    before, after = request.config.stash[STATE], state(stack)
    request.config.stash[STATE] = after
    for line in differences(before, after):
        report(f"{request.node.nodeid}: {line}")


@pytest.fixture
def open_path(stack):
    """A directory where the users of PostgreSQL, keeper and proxy can read; those of pytest are
    closed to them."""
    made = Path(tempfile.mkdtemp(prefix="open-", dir=stack.data.parent))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def schema(stack, request):
    """The name of a new schema of the test's own. Made and dropped without the proxy, which
    would read all schemas again."""
    name = re.sub(r"\W+", "_", request.node.name).lower()[:50]
    with stack.connect_dba() as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
        connection.execute(f'CREATE SCHEMA "{name}" AUTHORIZATION app')
    yield name
    with stack.connect_dba() as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("SET lock_timeout = '300s'")  # of what a failed test has left
        connection.execute(f'DROP SCHEMA "{name}" CASCADE')


@contextmanager
def connected(connection, schema, stack):
    """The connection, in the schema. A thread of a test that failed may wait with it forever: then
    its backend is ended, so that the next tests run."""
    with connection:
        connection.execute(f'SET search_path = "{schema}"')
        yield connection
        if connection.lock.acquire(timeout=60):
            connection.lock.release()
            return
        with stack.connect_dba() as dba:
            dba.execute("SELECT pg_terminate_backend(%s)", [connection.info.backend_pid])


@pytest.fixture
def app(stack, schema):
    """The application's connection, through the proxy, in the test's schema."""
    with connected(stack.connect_app(), schema, stack) as connection:
        yield connection


@pytest.fixture
def dba(stack, app, schema):
    """The superuser's connection, straight to PostgreSQL, in the same schema."""
    with connected(stack.connect_dba(), schema, stack) as connection:
        yield connection


@pytest.fixture
def second(stack, app, schema):
    """Another connection of the application in the same schema."""
    with connected(stack.connect_app(), schema, stack) as connection:
        yield connection


@pytest.fixture
def plain_twin(schema, second):
    """The second connection in an empty schema of its own, for plain tables under the names
    of the test's protected ones."""
    name = schema + "_plain"
    second.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
    second.execute(f'CREATE SCHEMA "{name}"')
    second.execute(f'SET search_path = "{name}"')
    yield second
    second.execute("SET client_min_messages = warning")
    second.execute(f'DROP SCHEMA "{name}" CASCADE')


def pytest_collection_modifyitems(items):
    """What differs with another version of PostgreSQL must fail there."""
    said = subprocess.run([PG_BIN / "postgres", "--version"], stdout=subprocess.PIPE, text=True)
    major = int(re.search(r"\d+", said.stdout)[0])
    differences = tomllib.loads((Path(__file__).parent / "versions.toml").read_text())
    reasons = {
        test: entry["reason"]
        for entry in differences["differs"]
        if entry["since"] <= major
        for test in entry["tests"]
    }
    for item in items:
        if reason := reasons.get(item.nodeid):
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


LINES = pytest.StashKey[list]()


@pytest.fixture(scope="session")
def report(pytestconfig):
    """Takes lines to print at the end."""
    return pytestconfig.stash.setdefault(LINES, []).append


def pytest_sessionfinish(session):
    """A worker of several gives its lines to the process that prints."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["lines"] = session.config.stash.get(LINES, [])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    lines = getattr(node, "workeroutput", {}).get("lines", [])
    node.config.stash.setdefault(LINES, []).extend(lines)


def pytest_terminal_summary(terminalreporter, config):
    for line in config.stash.get(LINES, []):
        terminalreporter.write_line(line)

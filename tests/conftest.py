"""Fixtures: one stack for all tests, connections of both sides, a schema for each test."""

import re

import psycopg
import pytest
from stack import Stack


@pytest.fixture(scope="session")
def stack(request):
    stack = Stack()
    stack.fresh()
    yield stack
    # After a failure, data and logs stay until the next run.
    stack.down(*([] if request.session.testsfailed else ["--remove"]))


@pytest.fixture
def app(stack, request):
    """The application's connection, through the proxy, in a new schema of the test's own."""
    name = re.sub(r"\W+", "_", request.node.name).lower()[:50]
    with stack.connect_app() as connection:
        connection.execute("SET statement_timeout = '60s'")
        connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
        connection.execute(f'CREATE SCHEMA "{name}"')
        connection.execute(f'SET search_path = "{name}"')
        yield connection
    with stack.connect_app() as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute(f'DROP SCHEMA "{name}" CASCADE')


@pytest.fixture
def schema(app) -> str:
    """The name of the test's schema."""
    return app.execute("SELECT current_schema()").fetchone()[0]


@pytest.fixture
def dba(stack, app):
    """The superuser's connection, straight to PostgreSQL, in the same schema."""
    with stack.connect_dba() as connection:
        connection.execute("SET statement_timeout = '60s'")
        name = app.execute("SELECT current_schema()").fetchone()[0]
        connection.execute(f'SET search_path = "{name}"')
        yield connection


@pytest.fixture
def second(stack, app):
    """Another connection of the application in the same schema."""
    with stack.connect_app() as connection:
        name = app.execute("SELECT current_schema()").fetchone()[0]
        connection.execute(f'SET search_path = "{name}"')
        yield connection


LINES = pytest.StashKey[list]()


@pytest.fixture(scope="session")
def report(pytestconfig):
    """Takes lines to print at the end."""
    return pytestconfig.stash.setdefault(LINES, []).append


def pytest_terminal_summary(terminalreporter, config):
    for line in config.stash.get(LINES, []):
        terminalreporter.write_line(line)


def pytest_configure():
    # Values are compared as text; psycopg must not prepare behind a test's back.
    psycopg.Connection.prepare_threshold = None

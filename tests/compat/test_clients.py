"""Drivers and ORMs see on protected columns what they see on plain ones.

Mechanism: each program of the folder `clients` runs on plain tables straight to PostgreSQL, and on
protected ones through the proxy; all it sees is compared. Right answer: equal, but for the checks
that `clients/differences` has with why. Bug: a form that a driver sends is refused, or gives
another type or value. With CONFIDE_UPDATE=1 docs/compatibility.md is written anew.
"""

import importlib.metadata
import os

import pytest
from client_programs import compare, counts, document, known, python, write_counts
from psycopg.conninfo import conninfo_to_dict
from stack import ROOT

UPDATE = bool(os.environ.get("CONFIDE_UPDATE"))
DOCS = ROOT / "docs" / "compatibility.md"

PROGRAMS = {
    "SQLAlchemy": ("sqlalchemy", "sqlalchemy_program.py"),
    "Django": ("django", "django_program.py"),
    "psycopg2": ("psycopg2-binary", "psycopg2_program.py"),
    "asyncpg": ("asyncpg", "asyncpg_program.py"),
    "pg8000": ("pg8000", "pg8000_program.py"),
}


def judge(result, version, report):
    """Fails with what differs and is not known to, and with what is known to and does not."""
    report(f"Clients: {result.line()}")
    why = known()
    new = [
        f"{check}: {what}"
        for check, what in result.outcomes.items()
        if what and (result.program, check) not in why
    ]
    assert not new, "\n".join(new)
    mine = [check for program, check in why if program == result.program]
    gone = [check for check in mine if not result.outcomes.get(check)]
    assert not gone, f"equal now, so no longer in the list: {gone}"
    if UPDATE:
        write_counts(result, version)
    assert counts().get(result.program) == (version, len(result.outcomes), result.equal)


@pytest.fixture(scope="module")
def port(stack):
    """That of a proxy that shows clients' tools types that they know."""
    with stack.another_proxy(plain_catalogs="*") as (_, url):
        yield int(conninfo_to_dict(url)["port"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(stack, port, report, name):
    package, program = PROGRAMS[name]
    result = compare(stack, port, name, python(program))
    judge(result, importlib.metadata.version(package), report)


def test_document_is_fresh():
    if UPDATE:
        DOCS.write_text(document())
    assert DOCS.read_text() == document(), "run make compat"

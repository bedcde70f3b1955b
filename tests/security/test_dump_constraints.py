"""Dumps with constraints, defaults and views over protected columns: made and restored directly and
through the proxy, whole, table by table, data only, and by parallel workers.

Mechanism: a superuser who restores has no client session, so the keeper does not check constraints
for him. Right: rows are restored anyway, the constraints become NOT VALID, and their owner
validates them through the proxy. Through the proxy, definitions contain values instead of the
session's envelopes, which nobody could restore. Bug: no row is loaded (08003).
"""

import pytest
from dumps import (
    SECRETS,
    another_database,
    fill,
    finish,
    holds,
    not_ready,
    not_valid,
    restored,
    same,
    tool,
)
from results import run


@pytest.fixture
def people(app):
    fill(app)
    return app


@pytest.fixture
def other(stack, people):
    with another_database(stack) as addresses:
        yield addresses


@pytest.mark.parametrize("form", ["plain", "inserts", "custom", "directory"])
def test_straight(stack, people, other, schema, form, tmp_path):
    """Dumped and restored by the superuser."""
    target = other["straight"]
    env = stack.restoring("restored", "--uses", "3" if form == "directory" else "1")
    head = ["-d", stack.dba_url, "-n", schema]
    if form == "directory":
        tool("pg_dump", *head, "-Fd", "-j", 2, "-f", tmp_path / "dump")
        tool("pg_restore", "--exit-on-error", "-j", 2, "-d", target, tmp_path / "dump", env=env)
    elif form == "custom":
        dump = tool("pg_dump", *head, "-Fc")
        tool("pg_restore", "--exit-on-error", "-d", target, stdin=dump, env=env)
    else:
        dump = tool("pg_dump", *head, *(["--rows-per-insert=7"] if form == "inserts" else []))
        assert [s for s in SECRETS if s in dump] == []
        tool("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", target, stdin=dump, env=env)
    with restored(other, schema) as connection:
        same(people, connection)
        # The plain one was checked.
        waiting = not_valid(connection)
        assert waiting == ["person_name_check", "person_pay_check", "visit_code_fkey"]
        assert not_ready(connection) == ["high"]
        finish(connection)
        holds(connection)


@pytest.mark.parametrize("order", [["person", "visit"], ["visit", "person"]])
def test_data_only_and_by_table(stack, people, other, schema, order):
    """The schema first, with constraints and indexes that are there while rows come in."""
    head = ["-d", stack.dba_url]
    load = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", other["straight"]]
    definitions = tool("pg_dump", *head, "-n", schema, "--schema-only")
    tool(*load, stdin=definitions, env=stack.restoring("restored"))
    for table in order:
        name = f'"{schema}".{table}'
        data = tool("pg_dump", *head, "-t", name, "--data-only")
        tool(*load, stdin=data, env=stack.restoring("restored", "--place", f"{schema}.{table}"))
    with restored(other, schema) as connection:
        same(people, connection)
        # Nothing is there of what nobody could compute, and no plan takes it for whole.
        assert not_valid(connection) == ["person_name_check", "person_pay_check", "visit_code_fkey"]
        assert not_ready(connection) == ["high"]
        found = "SELECT id FROM person WHERE name = 'Secretname30' AND pay > 1020.75"
        connection.execute("SET enable_seqscan = off")
        assert run(connection, found).rows == [("30",)]
        finish(connection)
        assert run(connection, found).rows == [("30",)]
        holds(connection)


def test_through_the_proxy(stack, people, other, schema):
    """Definitions and rows are values, and load as they are."""
    dump = tool("pg_dump", "-d", stack.app_url, "-n", schema, "--no-owner")
    assert b"cfd1." not in dump
    assert [s for s in SECRETS if s not in dump] == []
    tool("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", other["proxy"], stdin=dump)
    with restored(other, schema) as connection:
        same(people, connection)
        assert not_valid(connection) == []
        holds(connection)


def test_a_wrong_row_is_found(stack, people, other, schema):
    """What came in unchecked does not pass for checked."""
    dump = tool("pg_dump", "-d", stack.dba_url, "-n", schema, "-t", f'"{schema}".person')
    tool(
        "psql",
        "-X",
        "-q",
        "-d",
        other["straight"],
        "-c",
        f'CREATE SCHEMA "{schema}" AUTHORIZATION app',
    )
    load = ["-v", "ON_ERROR_STOP=1", "-d", other["straight"]]
    tool("psql", "-X", "-q", *load, stdin=dump, env=stack.restoring("restored"))
    with restored(other, schema) as connection:
        connection.execute("ALTER TABLE person DROP CONSTRAINT person_pay_check")
        connection.execute("ALTER TABLE person ADD CHECK (pay > 1010) NOT VALID")
        outcome = run(connection, "ALTER TABLE person VALIDATE CONSTRAINT person_pay_check")
        assert outcome.sqlstate == "23514"

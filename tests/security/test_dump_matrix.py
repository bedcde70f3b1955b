"""Dumps made and restored directly or through the proxy, in all combinations: whole, as INSERTs, by
parallel workers, data only, and table by table.

Mechanism: a dump made without a client contains export envelopes. The proxy passes them on
unchanged while it restores, which it recognises by pg_dump's first statements; in an application
they are ordinary values. Bug: the proxy seals them, so text columns contain envelopes, and other
columns refuse them. Plaintext values cannot be restored directly: the keeper accepts none from the
database.
"""

import subprocess

import psycopg
import pytest
from dumps import (
    FORMS,
    another_database,
    dump_and_restore,
    fill,
    finish,
    holds,
    not_ready,
    not_valid,
    restored,
    same,
)
from results import run
from stack import PG_BIN

WAYS = ["straight", "proxy"]


@pytest.fixture
def people(app):
    fill(app)
    return app


@pytest.fixture
def other(stack, people):
    with another_database(stack) as addresses:
        yield addresses


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("to", WAYS)
@pytest.mark.parametrize("source", WAYS)
def test_round_trip(stack, people, other, schema, tmp_path, source, to, form):
    address = stack.dba_url if source == "straight" else stack.app_url
    env = stack.restoring("restored", "--uses", "0")
    if (source, to) == ("proxy", "straight"):
        with pytest.raises(AssertionError, match=r"Connect through Confide.s proxy"):
            dump_and_restore(address, other[to], schema, form, tmp_path, env)
        return
    sizes = stack.log_sizes()
    dump_and_restore(address, other[to], schema, form, tmp_path, env)
    logged = stack.logged_since(sizes).encode()
    # Those that no number or envelope in a log could hold by chance.
    assert [s for s in (b"Secretname", b"nobody") if s in logged] == []
    with restored(other, schema) as connection:
        same(people, connection)
        assert not_valid(connection) == not_ready(connection) == [] or to == "straight"
        finish(connection)
        holds(connection)


@pytest.fixture
def envelope(people, stack, schema):
    """What the superuser sees of a name."""
    with stack.connect_dba() as dba:
        found = dba.execute(f'SELECT name FROM "{schema}".person WHERE id = 7').fetchone()
    assert found[0].startswith("cfd1.")
    return found[0]


START = ["SELECT pg_catalog.set_config('search_path', '', false)", "SET row_security = off"]


def test_an_envelope_in_a_form_is_a_value(app, envelope, schema):
    """No oracle: what a user types, and what a table of the application holds, is not opened."""
    app.execute("CREATE TABLE note (id int, body enc_text)")
    app.execute("INSERT INTO note VALUES (1, %s)", (envelope,))
    app.execute(psycopg.sql.SQL("INSERT INTO note VALUES (2, {})").format(envelope))
    with app.cursor().copy("COPY note FROM STDIN") as copy:
        copy.write_row((3, envelope))
    # Half of what pg_dump says is not enough.
    for half in START:
        app.execute(half)
        app.execute(f'INSERT INTO "{schema}".note VALUES (4, %s)', (envelope,))
        app.execute("RESET ALL")
    app.execute(f'SET search_path = "{schema}"')
    assert {row[0] for row in app.execute("SELECT body FROM note")} == {envelope}


def test_parameters_are_never_passed_on(stack, app, envelope, schema):
    app.execute("CREATE TABLE note (id int, body enc_text)")
    for said in START:
        app.execute(said)
    table = f'"{schema}".note'
    app.execute(f"INSERT INTO {table} VALUES (1, %s)", (envelope,))
    insert = psycopg.sql.SQL(f"INSERT INTO {table} VALUES (2, {{}})").format(envelope)
    # The words of pg_dump are no ticket: an account of the application's is no key.
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.execute(insert)
    app.execute(f"SET confide.restore_ticket = '{stack.ticket('app', '--other-columns')}'")
    app.execute(insert)
    rows = app.execute(f"SELECT body FROM {table} ORDER BY id").fetchall()
    assert rows == [(envelope,), ("Secretname7",)]
    # The end of it.
    app.execute("SET row_security = on")
    app.execute(psycopg.sql.SQL(f"INSERT INTO {table} VALUES (3, {{}})").format(envelope))
    rows = app.execute(f"SELECT body FROM {table} WHERE id = 3").fetchall()
    assert rows == [(envelope,)]


def test_what_is_no_export_envelope_is_a_value(stack, app, envelope, schema):
    """A session's envelope, a changed one and one of another type while a dump is restored."""
    app.execute(f"SET confide.restore_ticket = '{stack.ticket('app', '--other-columns')}'")
    app.execute("CREATE TABLE note (id int, body enc_text, n enc_int4)")
    for said in START:
        app.execute(said)
    table = f'"{schema}".note'
    changed = envelope[:-1] + ("A" if envelope[-1] != "A" else "B")
    insert = f"INSERT INTO {table} (id, body) VALUES (1, '{changed}')"
    assert run(app, insert).sqlstate in ("28000", "22P03", "42501")
    insert = f"INSERT INTO {table} (id, n) VALUES (1, '{envelope}')"
    assert run(app, insert).sqlstate is not None
    app.execute(f"INSERT INTO {table} (id, body) VALUES (1, 'cfd1.{'A' * 80}')")
    assert app.execute(f"SELECT body FROM {table}").fetchall() == [("cfd1." + "A" * 80,)]


def test_settings_of_a_superuser_do_not_say_it(stack, people, schema):
    """The proxy knows it from the client's words."""
    with stack.connect_dba() as dba:
        dba.execute("ALTER ROLE app SET row_security = off")
        dba.execute("ALTER ROLE app SET search_path = ''")
    try:
        with stack.connect_dba() as dba:
            sql = f'SELECT name FROM "{schema}".person WHERE id = 7'
            sealed = dba.execute(sql).fetchone()[0]
        text = f"""UPDATE "{schema}".person SET name = '{sealed}' WHERE id = 8;
            SELECT name FROM "{schema}".person WHERE id = 8"""
        done = subprocess.run(
            [PG_BIN / "psql", "-X", "-A", "-t", "-q", "-d", stack.app_url, "-f", "-"],
            input=text.encode(),
            capture_output=True,
        )
        assert done.stdout.decode().strip() == sealed, done.stderr
    finally:
        with stack.connect_dba() as dba:
            dba.execute("ALTER ROLE app RESET ALL")

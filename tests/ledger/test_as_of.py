"""`confide.as_of(table, time)`: rows as they were. Right: the table's rows at that time, with its
own columns. Bug: present rows, duplicate rows, or additional columns."""

import psycopg
import pytest


@pytest.fixture
def past(account):
    """`times` has a time before the last change: then there were 11.00 and 21.00."""
    account.execute("CREATE TABLE times AS SELECT clock_timestamp() AS at")
    account.execute("UPDATE account SET balance = 0, owner = 'nobody'")
    account.execute("DELETE FROM account WHERE id = 2")
    return account


def at(app):
    return app.execute("SELECT at FROM times").fetchone()[0]


THEN = [(1, "Ann", "11.00"), (2, "Bob", "21.00")]


@pytest.mark.parametrize("prepare", [False, True])
def test_rows(past, prepare):
    query = "SELECT id, owner::text, balance::text FROM confide.as_of({}, {}) ORDER BY id"
    for table in "account", "NULL::account":
        written = query.format(table, f"'{at(past)}'")
        assert past.execute(written, prepare=prepare).fetchall() == THEN
        bound = query.format(table, "%s")
        assert past.execute(bound, [at(past)], prepare=prepare).fetchall() == THEN
        assert past.execute(query.format(table, "(SELECT at FROM times)")).fetchall() == THEN
        now = past.execute(query.format(table, "now()"), prepare=prepare).fetchall()
        assert now == [(1, "nobody", "0.00")]
        assert past.execute(query.format(table, "'2000-01-01'")).fetchall() == []


def test_like_the_table(past):
    """With aliases, beside other tables, by their columns, with conditions on protected values."""
    time = at(past)
    found = past.execute("SELECT * FROM confide.as_of(account, %s) WHERE owner = 'Ann'", [time])
    assert [column.name for column in found.description] == ["id", "owner", "balance", "note"]
    assert len(found.fetchall()) == 1
    query = (
        "SELECT a.id, a.owner::text, a.balance::text FROM times,"
        " confide.as_of(account, times.at) AS a ORDER BY a.balance"
    )
    assert past.execute(query).fetchall() == THEN
    query = (
        "SELECT x, n.note FROM confide.as_of(account, %s) AS o (x), LATERAL confide.as_of(account,"
        " now()) n WHERE n.id = o.x AND o.balance > n.balance"
    )
    assert past.execute(query, [time]).fetchall() == [(1, "a")]
    past.execute(f"CREATE VIEW then_ AS SELECT * FROM confide.as_of(account, '{time}')")
    assert past.execute("SELECT count(*), min(owner)::text FROM then_").fetchone() == (2, "Ann")
    query = "SELECT sn > 0, by FROM confide.as_of(account, now())"
    assert past.execute(query).fetchall() == [(True, "app")]


def test_plain_and_quoted(app):
    """Nothing protected, and names that must be quoted."""
    app.execute('CREATE TABLE "Odd t" ("Id" int, "a""b" text) WITH (confide.ledger = on)')
    app.execute("""INSERT INTO "Odd t" VALUES (1, 'x')""")
    time = app.execute("SELECT clock_timestamp()").fetchone()[0]
    app.execute('DELETE FROM "Odd t"')
    for call in 'confide.as_of("Odd t", %s)', 'confide.as_of(NULL::"Odd t", %s)':
        found = app.execute(f'SELECT "Id", "a""b", sn > 0 FROM {call}', [time]).fetchall()
        assert found == [(1, "x", True)]


def test_without_the_proxy(app, dba):
    """The function of the server, for who has no proxy."""
    app.execute("CREATE TABLE plain (id int, what text) WITH (confide.ledger = on)")
    app.execute("INSERT INTO plain VALUES (1, 'first')")
    time = app.execute("SELECT clock_timestamp()").fetchone()[0]
    app.execute("UPDATE plain SET what = 'second'")
    query = "SELECT id, what, by FROM confide.as_of(NULL::plain, %s)"
    assert dba.execute(query, [time]).fetchall() == [(1, "first", "app")]
    with pytest.raises(psycopg.errors.WrongObjectType):
        dba.execute("SELECT * FROM confide.as_of(1, now())")


def test_refused(past):
    past.execute("CREATE TABLE other (id int)")
    past.execute("CREATE TABLE parts (id int) PARTITION BY LIST (id) WITH (confide.ledger = on)")
    for call, error in [
        ("confide.as_of(other, now())", psycopg.errors.WrongObjectType),
        ("confide.as_of(parts, now())", psycopg.errors.FeatureNotSupported),
        ("confide.as_of(missing, now())", psycopg.errors.UndefinedTable),
        ("confide.as_of(account)", psycopg.errors.SyntaxError),
        ("confide.as_of(1 + 1, now())", psycopg.errors.SyntaxError),
        ("confide.as_of(account, now()::enc_timestamptz)", psycopg.errors.FeatureNotSupported),
    ]:
        with pytest.raises(error):
            past.execute(f"SELECT id FROM {call}")

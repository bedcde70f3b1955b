"""Accounts: what was told of each column, and to whom.

Mechanism: the keeper tallies what it tells by the labels of values, so what it tells of a value
that was computed counts for each column that it was made from; accounts are by principal and
column, outlive the keeper, and are shown to clients under their key. Right: each kind of telling,
row by row and by the batch, is in the accounts of all of its columns. With the bug a database asks
about `pay + 0` as often as it likes, and no account says so.
"""

import json
import os
import re
import signal

import pytest
from accounts import KINDS, accounts
from results import run
from stack import ROOT, Stack, alive
from waiting import until


@pytest.fixture(scope="module")
def kept(stack):
    made = Stack(ROOT / ".run" / f"{stack.run.name}-accounts")
    made.up()
    yield made
    made.down("--remove")


@pytest.fixture
def emp(app, dba, schema):
    app.execute("CREATE TABLE emp (id int, pay enc_int4, bonus enc_int4, name enc_text)")
    app.execute(
        "INSERT INTO emp SELECT g, g % 7, g % 3, 'n' || g % 5 FROM generate_series(1, 100) g"
    )
    app.execute("ANALYZE emp")

    def told(sql, settings=(), principal="app", connection=app):
        """What a statement adds."""

        def ask():
            for setting in settings:
                connection.execute(f"SET {setting}")
            done = run(connection, sql)
            assert done.sqlstate is None, done
            connection.execute("RESET ALL")
            connection.execute(f'SET search_path = "{schema}"')

        return during(ask, principal)

    def during(act, principal="app"):
        """What somebody's acts add."""
        before = accounts(dba, schema, principal)
        act()
        after = accounts(dba, schema, principal)
        added = {}
        for column, counts in after.items():
            old = before.get(column, {})
            more = {kind: n - old.get(kind, 0) for kind, n in counts.items()}
            assert min(more.values()) >= 0
            added[column] = {kind: n for kind, n in more.items() if n}
        return {column: more for column, more in added.items() if more}

    told.during = during
    return told


BY_ROW = ["confide.enable_batch_scan = off", "confide.enable_hash_tokens = off"]


@pytest.mark.parametrize("settings", [[], BY_ROW], ids=["batch", "row"])
def test_conditions(emp, settings):
    """Each row that is decided counts, for every column of the condition, also computed."""
    told = emp("SELECT count(*) FROM emp WHERE id <= 100 AND id + 0 > 0", settings)
    assert told == {}
    for condition in "pay > 3", "pay + 0 > 3", "(pay + 0) * 2 > 3":
        told = emp(f"SELECT id FROM emp WHERE {condition}", settings)
        assert set(told) == {"pay"}, condition
        assert told["pay"]["booleans"] >= 100, condition
    told = emp("SELECT id FROM emp WHERE pay + bonus > 3", settings)
    assert [told[column]["booleans"] >= 100 for column in ("pay", "bonus")] == [True, True]
    told = emp("SELECT id FROM emp WHERE name LIKE 'n%'", settings)
    assert set(told) == {"name"}
    assert told["name"]["booleans"] >= 100


def test_kinds(emp, app, dba, schema):
    """Ranks, tokens, orders and values that are shown; each under its own name."""
    assert emp("SELECT id FROM emp ORDER BY pay + 1")["pay"]["ranks"] == 100
    groups = emp("SELECT count(*) FROM emp GROUP BY name")
    assert groups["name"]["tokens"] >= 5
    joined = emp("SELECT a.id FROM emp a JOIN emp b ON a.pay = b.bonus WHERE a.id < 3")
    assert any(joined["pay"].get(kind) for kind in ("tokens", "booleans"))
    assert emp("SELECT name || 'x' FROM emp")["name"]["shown"] == 100
    assert emp("SELECT sum(pay) FROM emp")["pay"]["shown"] == 1
    app.execute("CREATE INDEX ON emp (pay)")
    found = emp("SELECT id FROM emp WHERE pay = 3", ["enable_seqscan = off"])
    assert found["pay"]["orders"] > 0


def test_by_node(emp, app):
    """EXPLAIN (ANALYZE) says at each node what it has had disclosed: as much as the account."""
    app.execute("SET enable_nestloop = off; SET enable_mergejoin = off")
    for sql, column, kind, name in [
        ("SELECT id FROM emp WHERE pay + 0 > 3", "pay", "booleans", "Bits Declassified"),
        ("SELECT id FROM emp ORDER BY pay + 1", "pay", "ranks", "Rows Ranked"),
        ("SELECT count(*) FROM emp GROUP BY name", "name", "tokens", "Groups"),
        (
            "SELECT a.id FROM emp a JOIN emp b ON a.pay = b.pay",
            "pay",
            "tokens",
            "Rows Hashed",
        ),
    ]:
        plan = []

        def asked(sql=sql, plan=plan):
            plan += run(app, f"EXPLAIN (ANALYZE, COSTS off, TIMING off) {sql}").rows

        told = emp.during(asked)
        text = "\n".join(line for (line,) in plan)
        numbers = [int(n) for n in re.findall(rf"{name}: (\d+)", text)]
        assert numbers, text
        assert sum(numbers) == told[column][kind], text


def test_without_a_client(emp, dba, app, schema):
    """What a superuser is told is nobody's account, and export envelopes are counted."""
    app.execute("CREATE INDEX sorted ON emp (pay)")
    told = emp("REINDEX INDEX sorted", principal="-", connection=dba)
    # Autovacuum's ANALYZE may add its own.
    assert told["pay"]["ranks"] >= 100
    assert emp("SELECT pay FROM emp", principal="-", connection=dba)["pay"]["shown"] >= 100


def test_reported_to_the_client(emp, app, dba, schema):
    """The client's own report says what the view says, under its key, behind its own words."""
    run(app, "SELECT id FROM emp WHERE pay > 3")
    [(text,)] = run(app, "SELECT confide.leakage_report('today''s nonce')").rows
    words, *lines = text.splitlines()
    assert words == "today's nonce"
    mine = [line.split("\t") for line in lines if line.split("\t")[1] == schema]
    of = {line[3]: dict(zip(KINDS, map(int, line[4:]), strict=True)) for line in mine}
    assert of == accounts(dba, schema)
    assert run(dba, "SELECT confide.leakage_report('x')").sqlstate is not None
    assert json.dumps(of).count("booleans") == len(of)


def test_restart(kept):
    """A keeper that is told to stop has written all of it; one that goes on goes on from there."""
    with kept.connect_app() as app, kept.connect_dba() as dba:
        app.execute("CREATE TABLE emp (pay enc_int4)")
        app.execute("INSERT INTO emp SELECT generate_series(1, 50)")
        run(app, "SELECT count(*) FROM emp WHERE pay + 0 > 3 GROUP BY pay")
        run(app, "SELECT pay FROM emp WHERE pay + 0 > 3")
        before = accounts(dba, "public")
        assert before["pay"]["booleans"] >= 50
        pid = kept.keeper_pid()
        os.kill(pid, signal.SIGTERM)
        until(lambda: not alive(pid), "the keeper has ended")
        kept.start_keeper()
    with kept.connect_app() as app, kept.connect_dba() as dba:
        assert accounts(dba, "public") == before
        run(app, "SELECT pay FROM emp WHERE pay + 0 > 3")
        assert accounts(dba, "public")["pay"]["booleans"] >= before["pay"]["booleans"] + 50

"""A keeper that is killed, or whose store is lost, loses nothing of the families rnd_ and soft_.

Mechanism: their rows hold the values, sealed or encoded. Right answer: every acknowledged row, as
it was, and further statements work. With a bug a cell names something that only the keeper had.
"""

import os
import shutil

import psycopg
import pytest
from stack import ROOT, Stack
from waiting import drop_slot

ROWS = [(i, f"text {i % 50}", i * 7) for i in range(500)]
FAMILIES = ["rnd", "rnd_det", "soft"]


def answers(connection, family):
    # Tokens are no order.
    pay = "pay::enc_int4" if family == "rnd_det" else "pay"
    queries = [
        "SELECT * FROM kept ORDER BY id",
        "SELECT name, count(*) FROM kept WHERE pay = 77 OR name = 'text 3' GROUP BY 1",
        "SELECT sum(pay), min(pay), max(pay) FROM kept",
        f"SELECT id FROM kept WHERE pay < 100 ORDER BY {pay}",
    ]
    found = [connection.execute(query).fetchall() for query in queries]
    return [*found[:1], sorted(found[1]), *found[2:]]


def fill(app, family):
    app.execute(f"CREATE TABLE kept (id int PRIMARY KEY, name {family}_text, pay {family}_int4)")
    with app.cursor().copy("COPY kept FROM STDIN") as copy:
        for row in ROWS:
            copy.write_row(row)
    app.execute("CREATE INDEX ON kept (pay)")
    before = answers(app, family)
    assert before[0] == ROWS
    return before


def works(connection, family, before):
    assert answers(connection, family) == before
    connection.execute("UPDATE kept SET pay = 3 WHERE name = 'text 9'")
    connection.execute("INSERT INTO kept VALUES (-2, 'new', 3)")
    for scan in ("on", "off"):
        connection.execute(f"SET enable_seqscan = {scan}")
        found = connection.execute("SELECT count(*) FROM kept WHERE pay = 3").fetchone()
        assert found == (11,)


@pytest.mark.parametrize("family", FAMILIES)
def test_killed(stack, app, schema, family):
    """With an open transaction, and rows on their way."""
    before = fill(app, family)
    app.execute("BEGIN")
    app.execute("INSERT INTO kept VALUES (-1, 'not committed', 1)")
    stack.kill_keeper()
    stack.up()
    app.close()
    with stack.connect_app(options=f"-c search_path={schema}") as connection:
        works(connection, family, before)


def forget(stack):
    """What docs/operations.md says of giving up the values that the keeper stores."""
    stack.kill_keeper()
    directory = stack.data.parent / "keeper"
    shutil.rmtree(directory / "data")
    (directory / "data.freshness").unlink()
    (stack.data / "confide.store").unlink()
    with stack.connect_dba() as dba:
        drop_slot(dba)
    stack.up()


def test_store_lost():
    """All that the keeper has stored is gone, but for its keys. It knows no index of a client's
    any more, until the client uses it."""
    stack = Stack(ROOT / ".run" / f"lost-{os.getpid()}")
    stack.fresh()
    try:
        before = {}
        for family in FAMILIES:
            with stack.connect_app() as app:
                app.execute(f"CREATE SCHEMA {family}; SET search_path = {family}")
                before[family] = fill(app, family)
        forget(stack)
        with stack.connect_dba() as dba:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                dba.execute("REINDEX TABLE rnd.kept")
            for family in FAMILIES:
                with stack.connect_app(options=f"-c search_path={family}") as app:
                    works(app, family, before[family])
            dba.execute("REINDEX TABLE rnd.kept")
    finally:
        stack.down("--remove")

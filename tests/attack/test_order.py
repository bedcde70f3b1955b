"""The order of a column, without any key: ranks, sorts, joins of a column with itself, an index
of the superuser's making.

Mechanism: with `index_order_only` the keeper compares without a client only in columns of which
a client has searched an index, which have told their order. Right: 42501 for others, and
indexes of clients are kept without a client as before. With the bug the superuser has the rank of
every value, and of a boolean so the value.
"""

import psycopg
import pytest
from stack import ROOT, Stack

WAYS = {
    "dense_rank": "SELECT id, dense_rank() OVER (ORDER BY ok) FROM emp",
    "order by": "SELECT id FROM emp ORDER BY ok, id",
    "distinct": "SELECT DISTINCT ON (ok) id FROM emp",
    "min": "SELECT min(ok::text) FROM emp",
    "self join": "SELECT a.id, b.id FROM emp a JOIN emp b ON a.ok = b.ok AND a.id < b.id",
    "group by": "SELECT ok, count(*) FROM emp GROUP BY ok",
    "index": "CREATE INDEX planted ON emp (ok)",
    "statistics": "ANALYZE emp (ok)",
}
DEFAULT = "index_order_only is off: the order of any column is told"


def make(app):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4, ok enc_bool)")
    app.execute("CREATE INDEX ON emp (pay)")
    app.execute("INSERT INTO emp SELECT g, g * 10, g % 2 = 0 FROM generate_series(1, 40) g")
    app.execute("INSERT INTO emp VALUES (50, 500, true)")


@pytest.fixture(scope="module")
def strict(stack):
    """A stack of its own whose keeper tells the order of indexed columns only."""
    made = Stack(ROOT / ".run" / f"{stack.run.name}-strict")
    made.environment["CONFIDE_KEEPER_INDEX_ORDER_ONLY"] = "true"
    made.up()
    with made.connect_app() as app:
        make(app)
    yield made
    made.down("--remove")


def tried(dba, sql):
    try:
        return dba.execute(sql), None
    except psycopg.Error as error:
        return None, error.sqlstate


@pytest.mark.parametrize("name", WAYS)
def test_order(strict, attack, name):
    with strict.connect_dba() as dba:
        got, refused = tried(dba, WAYS[name])
    attack.attempt(f"the order of a column by {name}", got is not None)
    assert refused is not None


def test_by_default(app, dba, attack):
    make(app)
    got, _ = tried(dba, WAYS["dense_rank"])
    attack.attempt("the order of a column by default", got is not None, DEFAULT)


def test_indexes_of_clients(strict):
    """They are built anew and added to without a client, also by a keeper that was restarted."""
    with strict.connect_dba() as dba:
        dba.execute("SELECT confide.checkpoint()")
    strict.kill_keeper()
    strict.start_keeper(CONFIDE_KEEPER_INDEX_ORDER_ONLY="true")
    with strict.connect_dba() as dba:
        dba.execute("REINDEX TABLE emp")
        (envelope,) = dba.execute("SELECT pay FROM emp WHERE id = 3").fetchone()
        dba.execute("INSERT INTO emp VALUES (60, %s)", (envelope,))
        dba.execute("ANALYZE emp (pay)")
        assert len(dba.execute("SELECT id FROM emp ORDER BY pay").fetchall()) == 42
    with strict.connect_app() as app:
        found = app.execute("SELECT id FROM emp WHERE pay = 30 ORDER BY id").fetchall()
        assert found == [(3,), (60,)]

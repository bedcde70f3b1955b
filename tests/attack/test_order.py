"""The order of a column, without any key: ranks, sorts, joins of a column with itself, a
superuser's index.

Mechanism: by default (`index_order_only`) the keeper compares without a client only in columns on
which a client has built or searched an index, whose order is known anyway. Right: 42501 for other
columns, or no effect (ANALYZE keeps the existing statistics); indexes of clients are maintained
without a client. Bug: the superuser gets the rank of every value, and so the value of a boolean.
"""

import psycopg
import pytest

pytestmark = pytest.mark.ten(3)

WAYS = {
    "dense_rank": "SELECT id, dense_rank() OVER (ORDER BY ok) FROM emp",
    "order by": "SELECT id FROM emp ORDER BY ok, id",
    "distinct": "SELECT DISTINCT ON (ok) id FROM emp",
    "min": "SELECT min(ok::text) FROM emp",
    "self join": "SELECT a.id, b.id FROM emp a JOIN emp b ON a.ok = b.ok AND a.id < b.id",
    "group by": "SELECT ok, count(*) FROM emp GROUP BY ok",
    "one pair": "SELECT a.id FROM emp a, emp b WHERE a.id = 1 AND b.id = 2 AND a.ok < b.ok",
    "index": "CREATE INDEX planted ON emp (ok)",
}
SWITCHED_OFF = "index_order_only is off: the order of any column is told"


@pytest.fixture
def emp(app):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, pay enc_int4, ok enc_bool)")
    app.execute("CREATE INDEX ON emp (pay)")
    app.execute("INSERT INTO emp SELECT g, g * 10, g % 2 = 0 FROM generate_series(1, 40) g")
    app.execute("INSERT INTO emp VALUES (50, 500, true)")
    return app


def tried(dba, sql):
    try:
        return dba.execute(sql), None
    except psycopg.Error as error:
        return None, error.sqlstate


@pytest.mark.parametrize("name", WAYS)
def test_order(emp, dba, attack, name):
    got, refused = tried(dba, WAYS[name])
    attack.attempt(f"the order of a column by {name}", got is not None)
    assert refused is not None


def known(dba, schema):
    sql = "SELECT attname FROM pg_stats WHERE schemaname = %s AND tablename = 'emp' ORDER BY 1"
    return [name for (name,) in dba.execute(sql, [schema])]


def test_statistics(emp, dba, schema, attack):
    """ANALYZE without a client keeps the statistics of the column that a client's ANALYZE has
    found."""
    dba.execute("ANALYZE emp")
    attack.attempt("the order of a column by statistics", "ok" in known(dba, schema))
    assert known(dba, schema) == ["id", "pay"]
    emp.execute("ANALYZE emp")
    assert known(dba, schema) == ["id", "ok", "pay"]
    dba.execute("ANALYZE emp")
    assert known(dba, schema) == ["id", "ok", "pay"]


def restarted(stack, **environment):
    stack.kill_keeper()
    stack.start_keeper(**environment)


def test_switched_off(stack, emp, schema, attack):
    restarted(stack, CONFIDE_KEEPER_INDEX_ORDER_ONLY="false")
    try:
        with stack.connect_dba(options=f"-c search_path={schema}") as dba:
            got, _ = tried(dba, WAYS["dense_rank"])
    finally:
        restarted(stack)
    attack.attempt("the order of a column, switched off", got is not None, SWITCHED_OFF)


@pytest.mark.parametrize("kept", ["WAL", "checkpoint"])
def test_indexes_of_clients(stack, emp, dba, schema, kept):
    """They are rebuilt and extended without a client, even if the keeper was killed before a
    checkpoint: the WAL says that there is an index, and after one the keeper's own store."""
    if kept == "checkpoint":
        dba.execute("SELECT confide.checkpoint()")
    restarted(stack)
    ticket = stack.ticket("app")
    with stack.connect_dba(options=f"-c search_path={schema}") as dba:
        dba.execute("REINDEX TABLE emp")
        (envelope,) = dba.execute("SELECT pay FROM emp WHERE id = 3").fetchone()
        dba.execute(f"SET confide.restore_ticket = '{ticket}'")
        dba.execute("INSERT INTO emp VALUES (60, %s)", (envelope,))
        dba.execute("SET confide.restore_ticket = ''")
        dba.execute("ANALYZE emp (pay)")
        assert len(dba.execute("SELECT id FROM emp ORDER BY pay").fetchall()) == 42
    with stack.connect_app(options=f"-c search_path={schema}") as app:
        found = app.execute("SELECT id FROM emp WHERE pay = 30 ORDER BY id").fetchall()
        assert found == [(3,), (60,)]

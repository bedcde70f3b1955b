"""VACUUM and ANALYZE by a superuser, who has no client session, finish.

Mechanism: ANALYZE evaluates predicates and expressions of indexes for its sample, but without a
client the keeper evaluates nothing. Right: such a predicate is ignored, with a warning; the index
counts as one of all rows, without statistics. A protected expression has none, as with a client.
All other columns, and plain expressions, have theirs. Bug: VACUUM ANALYZE of the whole database,
and autovacuum, fail there (08003, no client session).
"""

import pytest
from results import run
from waiting import until

ROWS = 400


@pytest.fixture
def table(app):
    app.execute("CREATE TABLE t (i int PRIMARY KEY, n enc_int4, s enc_text, p int)")
    with app.cursor().copy("COPY t FROM STDIN") as copy:
        for i in range(ROWS):
            copy.write_row((i, i, f"s{i % 10}", i % 7))
    app.execute("CREATE INDEX t_greater ON t (i) WHERE n > 300")
    app.execute("CREATE INDEX t_moved ON t (p) WHERE n + 1 > 10 AND s > 's1' AND n IS NOT NULL")
    app.execute("CREATE INDEX t_plain ON t (s) WHERE p = 3")
    for index in EXPRESSIONS:
        app.execute(index)
    return app


EXPRESSIONS = [
    "CREATE INDEX e_lower ON t (lower(s))",
    "CREATE INDEX e_sum ON t ((n + 1), p)",
    "CREATE UNIQUE INDEX e_unique ON t ((n * 2))",
    "CREATE INDEX e_hash ON t USING hash (upper(s))",
    "CREATE INDEX e_part ON t (upper(s)) WHERE n > 300",
    "CREATE INDEX e_beside ON t ((p % 5), lower(s)) WHERE p > 0",
    "CREATE STATISTICS e_plain ON i, p FROM t",
]


def has_statistics(connection):
    """Columns of the table and of its indexes with statistics."""
    found = (
        "SELECT c.relname, a.attname FROM pg_statistic s JOIN pg_class c ON c.oid = s.starelid "
        "JOIN pg_attribute a ON (a.attrelid, a.attnum) = (s.starelid, s.staattnum) "
        "WHERE c.relnamespace = current_schema::regnamespace"
    )
    return set(connection.execute(found).fetchall())


def statistics_of_the_others(connection):
    """Of n nothing, which has no index without an expression, nor of protected expressions."""
    columns = {("t", column) for column in "isp"}
    assert has_statistics(connection) == columns | {("e_beside", "expr")}
    made = (
        "SELECT count(*) FROM pg_statistic_ext_data d JOIN pg_statistic_ext e ON e.oid = stxoid "
        "WHERE stxname = 'e_plain' AND stxnamespace = current_schema::regnamespace"
    )
    assert connection.execute(made).fetchone() == (1,)


def tuples(connection, index):
    found = "SELECT reltuples::int FROM pg_class WHERE oid = %s::regclass"
    return connection.execute(found, (index,)).fetchone()[0]


@pytest.mark.parametrize("command", ["ANALYZE", "VACUUM ANALYZE", "VACUUM (FREEZE, ANALYZE)"])
def test_superuser(table, dba, command):
    told = []
    dba.add_notice_handler(lambda notice: told.append(notice.message_primary))
    dba.execute(f"{command} t")
    assert "the predicate of a partial index is not evaluated" in told
    # Plain predicates are evaluated as ever.
    assert 0 < tuples(dba, "t_plain") < ROWS
    statistics_of_the_others(dba)
    query = "SELECT i FROM t WHERE n > 390 ORDER BY i"
    assert [row[0] for row in table.execute(query)] == list(range(391, ROWS))


def test_whole_database(table, dba):
    dba.execute("VACUUM ANALYZE")
    statistics_of_the_others(dba)


@pytest.fixture
def eager(dba):
    """Autovacuum looks each second, as often as it can."""
    dba.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
    dba.execute("SELECT pg_reload_conf()")
    yield
    dba.execute("ALTER SYSTEM RESET autovacuum_naptime")
    dba.execute("SELECT pg_reload_conf()")


def test_autovacuum(table, dba, eager):
    """Its workers have no client either, and nobody reads their errors: the table would be
    neither vacuumed nor analyzed again."""
    dba.execute(
        "ALTER TABLE t SET (autovacuum_analyze_threshold = 1, autovacuum_analyze_scale_factor = 0, "
        "autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0)"
    )
    table.execute("UPDATE t SET p = p + 1 WHERE i < 50")
    found = (
        "SELECT last_autovacuum IS NOT NULL AND last_autoanalyze IS NOT NULL "
        "FROM pg_stat_user_tables WHERE relid = 't'::regclass"
    )
    until(lambda: dba.execute(found).fetchone()[0], "autovacuum has vacuumed and analyzed t")
    assert 0 < tuples(dba, "t_plain") < ROWS
    statistics_of_the_others(dba)
    for query, rows in (
        ("SELECT count(*) FROM t WHERE lower(s) = 's3'", ROWS // 10),
        ("SELECT count(*) FROM t WHERE n + 1 > 390", ROWS - 390),
        ("SELECT count(*) FROM t WHERE n * 2 = 20", 1),
    ):
        assert table.execute(query).fetchone() == (rows,), query


def test_with_a_client(table):
    """Through the proxy predicates are evaluated."""
    table.execute("ANALYZE t")
    assert tuples(table, "t_greater") == ROWS - 301


def test_only_there(table, dba):
    """Nothing else that compares becomes true for it."""
    for query in (
        "SELECT count(*) FROM t WHERE n > n",
        "SELECT count(*) FROM t WHERE n + n IS NULL",
        "CREATE INDEX CONCURRENTLY again ON t (i) WHERE n + n > n",
        "REINDEX INDEX t_greater",
    ):
        assert run(dba, query).sqlstate is not None, query
    dba.execute("DROP INDEX IF EXISTS again")
    dba.execute("CREATE INDEX again ON t (i) WHERE n + n > n")
    state = "SELECT indisvalid, indisready FROM pg_index WHERE indexrelid = 'again'::regclass"
    assert dba.execute(state).fetchone() == (False, False)
    table.execute("REINDEX INDEX again")
    assert dba.execute(state).fetchone() == (True, True)

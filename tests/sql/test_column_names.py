"""Names of columns whose call the proxy writes otherwise, types of both arms of set operations.

Mechanism: `concat` becomes `||`, `quote_nullable` becomes `coalesce`, and the column gets its name
by AS; columns of the family rnd_ with different types are cast to those of enc_.
Right: names, types and rows of plain columns. Bug: the column is called `?column?`, so that a query
around it does not find it; 42804 or 42846 for types that PostgreSQL unites.
"""

import pytest
from results import plain, run

NAMED = [
    "SELECT concat(s, n), concat(s), quote_nullable(s), concat_ws('-', s, n) FROM t",
    "SELECT format('%s', s), (SELECT concat(s, 'x')), array_agg(n) FROM t GROUP BY s ORDER BY s",
    "SELECT u.concat FROM (SELECT concat(s, 'x') FROM t) u ORDER BY concat",
    "CREATE TABLE made AS SELECT concat(s, n), n + 1, quote_nullable(s) FROM t",
    "SELECT * FROM made ORDER BY concat",
    "CREATE VIEW seen AS SELECT concat(n, s) FROM t",
    "SELECT seen.concat FROM seen ORDER BY 1",
    "INSERT INTO t (s, n) VALUES ('z', 9) RETURNING concat(n, s)",
]
UNITED = [
    "VALUES (1, 'a') UNION SELECT n, s FROM t ORDER BY 1, 2",
    "SELECT n, s FROM t UNION VALUES (7, 'q') ORDER BY 1, 2",
    "SELECT n FROM t UNION SELECT e FROM t ORDER BY 1",
    "SELECT n FROM t UNION ALL SELECT q FROM t ORDER BY 1",
    "SELECT q FROM t INTERSECT SELECT n FROM t ORDER BY 1",
    "SELECT e FROM t EXCEPT SELECT 2.0 ORDER BY 1",
    "SELECT x FROM (SELECT n FROM t UNION SELECT e FROM t) u (x) WHERE x > 1 ORDER BY x",
    "SELECT nullif(n, q), nullif(n, e), nullif(e, 2) FROM t ORDER BY n",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY q),"
    " percentile_cont(0.5) WITHIN GROUP (ORDER BY n DESC),"
    " percentile_cont(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY e) FROM t",
    "WITH RECURSIVE r AS (SELECT n, s FROM t WHERE n = 1"
    " UNION ALL SELECT n + 1, s || 'x' FROM r WHERE n < 4)"
    " SELECT * FROM r ORDER BY n",
    "WITH RECURSIVE r AS (SELECT n FROM t WHERE n = 1 UNION SELECT t.n2 FROM t JOIN r USING (n))"
    " SELECT * FROM r ORDER BY n",
    "WITH RECURSIVE r AS (SELECT n, n2 FROM t WHERE n = 1"
    " UNION ALL SELECT t.n, t.n2 FROM t JOIN r ON t.n = r.n2)"
    " CYCLE n SET looped USING way SELECT n, looped FROM r ORDER BY n",
]


@pytest.mark.parametrize("family", ["enc_", "rnd_"])
@pytest.mark.parametrize("queries", [NAMED, UNITED], ids=["named", "united"])
def test_as_on_plain_tables(app, plain_twin, queries, family):
    made = "CREATE TABLE t (s enc_text, n enc_int4, n2 enc_int4, e enc_int8, q enc_numeric)"
    rows = "INSERT INTO t VALUES ('a', 1, 2, 2, 1.0), ('b', 2, 3, 3000000000, 2.5)"
    for sql in [made, rows, *queries]:
        ours = run(app, sql.replace("enc_", family))
        theirs = run(plain_twin, plain(sql))
        assert ours.same(theirs), f"{sql}\n{ours}\n{theirs}"
        assert theirs.sqlstate is None, f"{sql}\n{theirs}"


def names(connection, sql):
    return [column.name for column in connection.execute(sql).description]


def test_names(app, plain_twin):
    for connection, kind in ((app, "enc_"), (plain_twin, "")):
        connection.execute(f"CREATE TABLE t (s {kind}text, n {kind}int4)")
    for sql in [NAMED[0], "SELECT * FROM (SELECT concat(s, 'x'), n * 2 FROM t) u"]:
        assert names(app, sql) == names(plain_twin, sql)


@pytest.mark.parametrize(
    "sql", ["INSERT INTO t (n) VALUES ('x')", "INSERT INTO t (n) VALUES ('99999999999')"]
)
def test_fields_of_errors(app, plain_twin, sql):
    """What the server tells the proxy by names of a constraint and a type is not shown."""
    told = []
    for connection, kind in ((app, "enc_"), (plain_twin, "")):
        connection.execute(f"CREATE TABLE t (n {kind}int4)")
        with pytest.raises(Exception) as error:
            connection.execute(sql)
        d = error.value.diag
        told.append((d.sqlstate, d.message_primary, d.constraint_name, d.datatype_name))
    assert told[0] == told[1]

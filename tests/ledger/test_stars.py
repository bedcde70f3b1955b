"""`*` represents the columns in the definition of a ledger table, in every statement whose own
result it is. Bug: number, time and author are included; or extension and proxy count differently,
and there is a protected column where the proxy expects a plain one."""

import psycopg
import pytest


@pytest.fixture
def pair(app):
    app.execute("CREATE TABLE a (id int PRIMARY KEY, v enc_text, n int) WITH (confide.ledger = on)")
    app.execute("CREATE TABLE b (id int PRIMARY KEY, w enc_int4)")
    app.execute("INSERT INTO a VALUES (1, 'x', 10), (2, 'y', 20)")
    app.execute("INSERT INTO b VALUES (1, 5), (2, 6)")
    return app


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT * FROM a", "id v n"),
        ("TABLE a", "id v n"),
        ("SELECT a.* FROM a", "id v n"),
        ("SELECT (a).* FROM a", "id v n"),
        ("SELECT x.*, v AS again, sn IS NULL AS s FROM a x", "id v n again s"),
        ("SELECT *, sn FROM a", "id v n sn"),
        ("SELECT sn, valid_from, by FROM a", "sn valid_from by"),
        ("SELECT a.*, b.* FROM a, b WHERE a.id = b.id", "id v n id w"),
        ("SELECT * FROM a JOIN b USING (id)", "id v n w"),
        ("SELECT * FROM b LEFT JOIN a ON a.id = b.id", "id w id v n"),
        ("SELECT * FROM (a JOIN b USING (id)) AS j", "id v n w"),
        ("SELECT * FROM (SELECT * FROM a) x, b WHERE x.id = b.id", "id v n id w"),
        ("SELECT * FROM (SELECT sn, id, v FROM a) x", "sn id v"),
        ("SELECT x.*, sn FROM (SELECT * FROM a) x", "id v n sn"),
        ("WITH c AS (SELECT * FROM a) SELECT *, 1 AS one FROM c, b WHERE b.id = c.id", None),
        ("WITH c AS (TABLE a) SELECT * FROM (SELECT * FROM c) d", "id v n"),
        ("WITH c AS (UPDATE a SET n = n RETURNING *) SELECT * FROM c", "id v n"),
        ("SELECT * FROM a ORDER BY sn DESC, id", "id v n"),
        ("SELECT DISTINCT * FROM a", "id v n"),
        ("SELECT DISTINCT ON (sn) * FROM a", "id v n"),
        ("SELECT * FROM a GROUP BY id", "id v n"),
        ("SELECT *, rank() OVER (ORDER BY sn) AS r FROM a", "id v n r"),
        ("SELECT * FROM a WHERE sn > 0 FOR UPDATE", "id v n"),
        ("INSERT INTO a VALUES (3, 'z', 30) RETURNING *, sn > 0 AS s", "id v n s"),
        ("UPDATE a SET v = 'u' WHERE id = 1 RETURNING *", "id v n"),
        ("DELETE FROM a WHERE id = 1 RETURNING a.*", "id v n"),
        ("SELECT * FROM a UNION ALL SELECT * FROM a", "id v n sn valid_from by"),
    ],
)
def test_names(pair, query, names):
    for prepare in False, True:
        with pair.transaction(force_rollback=True):
            found = pair.execute(query, prepare=prepare)
            shown = [column.name for column in found.description]
            if names is None:
                names = "id v n id w one"
            assert shown == names.split()
            rows = found.fetchall()
            assert rows
            assert {len(row) for row in rows} == {len(shown)}


def test_values(pair):
    """What is left is each column's own, also behind what was taken out."""
    found = pair.execute("SELECT a.*, b.* FROM a, b WHERE a.id = b.id ORDER BY sn").fetchall()
    assert found == [(1, "x", 10, 1, 5), (2, "y", 20, 2, 6)]
    pair.execute("ALTER TABLE a ADD COLUMN later enc_text")
    pair.execute("UPDATE a SET later = 'l' WHERE id = 2")
    found = pair.execute("SELECT * FROM a ORDER BY sn, id").fetchall()
    assert found == [(1, "x", 10, None), (2, "y", 20, "l")]


def test_distinct_by_a_number(pair):
    """As PostgreSQL says it of any expression that is not selected."""
    with pytest.raises(psycopg.errors.InvalidColumnReference):
        pair.execute("SELECT DISTINCT * FROM a ORDER BY sn")


def test_what_is_made_of_it(pair):
    """Views, copies, cursors, COPY have what is shown; functions have rows as they were."""
    pair.execute("CREATE VIEW seen AS SELECT * FROM a")
    pair.execute("CREATE TABLE taken AS SELECT * FROM a")
    pair.execute("SELECT * INTO taken_too FROM a")
    for name in "seen", "taken", "taken_too":
        found = pair.execute(f"SELECT * FROM {name} ORDER BY id")
        assert [column.name for column in found.description] == ["id", "v", "n"]
        assert found.fetchall() == [(1, "x", 10), (2, "y", 20)]
    with pair.cursor().copy("COPY (SELECT * FROM a ORDER BY id) TO STDOUT") as copy:
        assert list(copy.rows()) == [("1", "x", "10"), ("2", "y", "20")]
    with pair.transaction():
        pair.execute("DECLARE c CURSOR FOR SELECT * FROM a ORDER BY id")
        assert pair.execute("FETCH ALL FROM c").fetchall() == [(1, "x", 10), (2, "y", 20)]
    pair.execute(
        "CREATE FUNCTION rows_of_a() RETURNS SETOF a LANGUAGE sql AS 'SELECT * FROM a ORDER BY id'"
    )
    found = pair.execute("SELECT id, sn > 0 FROM rows_of_a()").fetchall()
    assert found == [(1, True), (2, True)]

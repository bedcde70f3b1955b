"""The family rnd_ in batches: one message opens a page of cells.

Mechanism: cells are operands of batched scans and aggregations, and keys of sorts by ranks. Right:
PostgreSQL's results on the plain twin, with a few answered messages for thousands of rows. Bug:
each row is waited for, rows of another batch are returned, or a statement ends after a batch.
"""

import psycopg
import pytest

ROWS = 3000
# Answered messages that a statement may take, whatever the number of rows.
FEW = 30

COLUMNS = {"n": "int4", "price": "numeric(10,2)", "name": "text", "born": "date"}


def row(number: int) -> tuple:
    """Every seventh row has NULLs; names repeat."""
    if number % 7 == 0:
        return number, None, None, None, None
    day = f"{1950 + number % 60}-{number % 12 + 1:02}-{number % 28 + 1:02}"
    return number, number * 31 % 1000, f"{number % 90}.50", f"name {number % 40}", day


def fill(connection, family: str) -> None:
    columns = ", ".join(f"{name} {family}{type_}" for name, type_ in COLUMNS.items())
    connection.execute(f"CREATE TABLE item (id int PRIMARY KEY, {columns})")
    with connection.cursor().copy("COPY item FROM STDIN") as copy:
        for number in range(ROWS):
            copy.write_row(row(number))
    connection.execute("ANALYZE item")


@pytest.fixture
def both(app, plain_twin, dba):
    dba.execute("GRANT pg_monitor TO app")
    fill(app, "rnd_")
    fill(plain_twin, "")
    plain_twin.execute('ALTER TABLE item ALTER name TYPE text COLLATE "C"')
    yield app, plain_twin
    dba.execute("REVOKE pg_monitor FROM app")


def answered(connection) -> int:
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'channel.answered_total'"
    return int(connection.execute(query).fetchone()[0])


QUERIES = [
    "SELECT count(*) FROM item WHERE n BETWEEN 100 AND 700",
    "SELECT id FROM item WHERE n > 990 AND name LIKE '%1%' ORDER BY id",
    "SELECT count(*) FROM item WHERE n IN (1, 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31) OR n IS NULL",
    "SELECT count(*) FROM item WHERE name IN ('name 3', 'name 5') AND n NOT IN (5, 7, 31)",
    "SELECT count(*) FROM item WHERE n IS DISTINCT FROM 31",
    "SELECT count(*) FROM item WHERE born + 1 > '1999-01-01' AND price * 2 < n",
    "SELECT sum(price), min(n), max(name), count(born), count(DISTINCT n), avg(n) FROM item",
    "SELECT name, count(*), sum(price * (1 - price)) FROM item GROUP BY name ORDER BY name",
    "SELECT name, n % 3, max(born) FROM item GROUP BY 1, 2 HAVING name > 'name 30' ORDER BY 1, 2",
    "SELECT count(*) FROM (SELECT DISTINCT born, name FROM item) d",
    "SELECT sum(CASE WHEN name = 'name 3' THEN price ELSE 0.00::numeric(10,2) END) FROM item"
    " WHERE n > 5",
]


@pytest.mark.parametrize("query", QUERIES)
def test_few_round_trips(both, query):
    app, plain = both
    if "ELSE 0.00" in query:
        query = query.replace("::numeric(10,2)", "")
        wanted = plain.execute(query).fetchall()
        query = query.replace("THEN price", "THEN price::enc_numeric")
    else:
        wanted = plain.execute(query).fetchall()
    app.execute(query)
    before = answered(app)
    got = app.execute(query).fetchall()
    taken = answered(app) - before
    assert got == wanted
    assert taken < FEW + len(got), (taken, app.execute(f"EXPLAIN {query}").fetchall())


RESULTS = [
    "SELECT * FROM item ORDER BY id",
    "SELECT id, name, n + 1, born FROM item ORDER BY id",
    "SELECT name, born, price FROM item WHERE id = 5",
    "SELECT a.id, b.name FROM item a LEFT JOIN item b ON a.id = b.id + 2900 ORDER BY a.id",
]


@pytest.mark.parametrize("query", RESULTS)
def test_results(both, query):
    """Cells of many rows go out with one request for their envelopes."""
    app, plain = both
    wanted = plain.execute(query).fetchall()
    app.execute(query)
    before = answered(app)
    assert app.execute(query).fetchall() == wanted
    assert answered(app) - before < (FEW if len(wanted) > 1 else 4)


@pytest.mark.parametrize("key", ["name DESC, price", "born NULLS FIRST, n", "n, id DESC"])
def test_sorts(both, key):
    """Rows sorted by ranks of what is in their cells."""
    app, plain = both
    query = f"SELECT string_agg(id::text, ' ') FROM (SELECT id FROM item ORDER BY {key}, id) s"
    wanted = plain.execute(query).fetchall()
    before = answered(app)
    assert app.execute(query).fetchall() == wanted
    assert answered(app) - before < FEW


def test_groups_that_find_no_room(both):
    """Cells of rows that the keeper hands back are sent again in another pass."""
    app, plain = both
    query = "SELECT n, name, count(*), sum(price) FROM item GROUP BY n, name ORDER BY n, name"
    app.execute("SET confide.batch_aggregate_memory = '16kB'")
    plan = "\n".join(r[0] for r in app.execute(f"EXPLAIN (ANALYZE) {query}").fetchall())
    assert "Passes" in plan, plan
    assert app.execute(query).fetchall() == plain.execute(query).fetchall()


def test_large_cells_end_a_batch(both):
    """Each cell has a megabyte: a batch has a few rows, and all rows are there."""
    app, plain = both
    query = "SELECT count(*), sum(length(name)) FROM item WHERE name LIKE '%z' AND n > -5"
    for connection in (app, plain):
        connection.execute("DELETE FROM item WHERE id > 40")
        connection.execute("UPDATE item SET n = 1, name = repeat('xy', 500000) || 'z'")
    assert app.execute(query).fetchall() == plain.execute(query).fetchall()


def test_an_altered_cell_of_a_batch(both, dba):
    """It is an error of its row: raised where the row is looked at, and not where it is not."""
    app, _ = both
    (cell,) = dba.execute("SELECT n FROM item WHERE id = 1").fetchone()
    other = cell[:-1] + ("A" if cell[-1] != "A" else "Q")
    with dba.cursor().copy("COPY item (id, n) FROM STDIN") as copy:
        copy.write_row((ROWS + 1, other))
    for query in ("SELECT count(*) FROM item WHERE n > 5", "SELECT sum(n) FROM item"):
        with pytest.raises(psycopg.errors.DataCorrupted):
            app.execute(query).fetchall()
    assert app.execute(f"SELECT count(*) FROM item WHERE n > 5 AND id < {ROWS}").fetchone()[0] > 0

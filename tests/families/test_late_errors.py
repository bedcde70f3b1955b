"""A product that overflows fails its statement, as in PostgreSQL, though only the client learns it.

Mechanism: the proxy reports the error when it opens the row, and has the server's transaction fail;
what would be committed before that waits (crates/proxy/src/session/late.rs). Right: SQLSTATE, the
rows of the table afterwards, and the state of the transaction are those of the plain twin, and the
session goes on. Bug: the connection ends, a change stays, a later statement of a failed
transaction or pipeline is executed.
"""

import psycopg
import pytest
from psycopg.pq import ExecStatus

FILL = "INSERT INTO m VALUES (1, 5, 1), (2, 2147483647, 1), (3, 7, 1)"
OVERFLOWS = "SELECT n * 2 FROM m ORDER BY id"
HOLDS = "SELECT n * 2 FROM m WHERE id = 1"
CHANGES = "UPDATE m SET d = d + 1 RETURNING n * 2"
TRANSACTIONS = [
    ["BEGIN", "UPDATE m SET d = 2", OVERFLOWS, "UPDATE m SET d = 3", "COMMIT"],
    ["BEGIN", "UPDATE m SET d = 2", HOLDS, "UPDATE m SET d = 3", "COMMIT"],
    ["BEGIN", CHANGES, "ROLLBACK", "UPDATE m SET d = 4 WHERE id = 1"],
    ["BEGIN", "SAVEPOINT s", CHANGES, "SELECT 1", "ROLLBACK TO s", HOLDS, "COMMIT"],
    [
        "BEGIN",
        "DECLARE c CURSOR FOR SELECT n * 2 FROM m ORDER BY id",
        "FETCH 1 FROM c",
        "FETCH 1 FROM c",
        "FETCH 1 FROM c",
        "COMMIT",
    ],
    ["BEGIN", "DECLARE h CURSOR WITH HOLD FOR SELECT n * 2 FROM m WHERE id = 1", "COMMIT"],
    ["PREPARE p AS " + CHANGES, "EXECUTE p", HOLDS],
    ["UPDATE m SET d = 5; " + OVERFLOWS, "UPDATE m SET d = 6 WHERE id = 3; " + HOLDS],
    [OVERFLOWS + "; UPDATE m SET d = 7", HOLDS + "; UPDATE m SET d = 8 WHERE id = 1"],
    ["WITH u AS (UPDATE m SET d = 9 RETURNING n) SELECT n * 2 FROM u"],
    ["SELECT product FROM products", "SELECT product FROM products WHERE id = 3"],
    ["SELECT changed(), n * 2 FROM m"],
]


@pytest.fixture
def twins(app, plain_twin):
    for connection, declared in [(app, "soft_int4(eq, mul)"), (plain_twin, "int4")]:
        connection.execute(f"CREATE TABLE m (id int PRIMARY KEY, n {declared}, d int)")
        connection.execute(FILL)
        connection.execute("CREATE VIEW products AS SELECT id, n * 2 AS product FROM m")
        connection.execute(
            "CREATE FUNCTION changed() RETURNS int LANGUAGE sql"
            " AS 'UPDATE m SET d = d + 10 RETURNING d'"
        )
    return app, plain_twin


def outcome(connection, query, **how):
    try:
        cursor = connection.execute(query, **how)
        while cursor.nextset():
            pass
        found = cursor.fetchall() if cursor.description else cursor.statusmessage
    except psycopg.Error as error:
        found = error.sqlstate
    return found, connection.info.transaction_status


def rows(connection):
    if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        connection.execute("ROLLBACK")
    return connection.execute("SELECT id, d FROM m ORDER BY id").fetchall()


@pytest.mark.parametrize(
    ("statements", "prepare"),
    [(s, p) for s in TRANSACTIONS for p in (False, True) if not p or ";" not in "".join(s)],
)
def test_transactions(twins, statements, prepare):
    """Statements one by one, of either protocol."""
    told = [[outcome(c, s, prepare=prepare) for s in statements] for c in twins]
    assert told[0] == told[1]
    assert rows(twins[0]) == rows(twins[1])


@pytest.mark.parametrize("middle", [OVERFLOWS, HOLDS, CHANGES])
@pytest.mark.parametrize("block", [False, True], ids=["implicit", "block"])
def test_pipelines(twins, middle, block):
    """What stands in a pipeline before and behind it is undone with it, or committed with it."""
    told = []
    for connection in twins:
        states = []
        try:
            with connection.pipeline() as pipeline:
                if block:
                    connection.execute("BEGIN")
                cursors = [
                    connection.execute(s)
                    for s in ["UPDATE m SET d = 2", middle, "UPDATE m SET d = 3 WHERE id = 2"]
                ]
                pipeline.sync()
                cursors.append(connection.execute("UPDATE m SET d = 4 WHERE id = 3"))
                if block:
                    connection.execute("COMMIT")
            states = [c.statusmessage for c in cursors]
        except psycopg.Error as error:
            states = [error.sqlstate]
        told.append((states, rows(connection)))
    assert told[0] == told[1]


def test_commit_that_fails(twins):
    """The proxy's own COMMIT reports what PostgreSQL's would, in place of the completion."""
    found = []
    for connection in twins:
        connection.execute("CREATE TABLE other (id int PRIMARY KEY)")
        connection.execute("INSERT INTO other VALUES (1)")
        connection.execute(
            "ALTER TABLE m ADD FOREIGN KEY (d) REFERENCES other DEFERRABLE INITIALLY DEFERRED"
        )
        change = "UPDATE m SET d = {} WHERE id = 1 RETURNING n * 2"
        found.append([outcome(connection, change.format(d), prepare=False) for d in (2, 1)])
        found[-1].append(rows(connection))
    assert found[0] == found[1]
    assert found[0][0][0] == "23503"


def test_rows_before_it(twins):
    """The rows before the one that overflows have come, and the completion has not."""
    for connection in twins:
        found = connection.pgconn.exec_(OVERFLOWS.encode())
        assert found.status == ExecStatus.FATAL_ERROR
        connection.pgconn.send_query(OVERFLOWS.encode())
        connection.pgconn.set_single_row_mode()
        states = []
        while (result := connection.pgconn.get_result()) is not None:
            states.append(result.status)
        assert states == [ExecStatus.SINGLE_TUPLE, ExecStatus.FATAL_ERROR]
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_what_cannot_be_undone(app, stack, schema):
    """A text that commits by itself ends the connection: what it did stands."""
    app.execute("CREATE TABLE m (id int PRIMARY KEY, n soft_int4(eq, mul), d int)")
    app.execute(FILL)
    with stack.connect_app() as other:
        other.execute(f'SET search_path = "{schema}"')
        with pytest.raises(psycopg.Error) as error:
            other.execute(f"BEGIN; UPDATE m SET d = 2; {OVERFLOWS}; COMMIT")
        assert error.value.sqlstate == "22003"
        assert other.closed

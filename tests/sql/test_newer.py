"""SQL that only newer versions of PostgreSQL understand, through the proxy. Right answer:
plaintext's rows where the server knows it, an error where it does not, and in no case a literal in
the logs.
crates/rewrite/tests/newer.rs has more.

Bug: the proxy takes a construct for another one, and a literal that meets a protected value goes
to the server in the clear."""

import pytest
from results import run

CANARY = 730_145_902
TEXT = "canary-730145902"

# The first version that has it, and the statement.
STATEMENTS = [
    (16, f"SELECT any_value(pay) = {CANARY} FROM t WHERE id = 1"),
    (16, f"SELECT id FROM (SELECT id, pay FROM t) WHERE pay <> {CANARY} ORDER BY id"),
    (
        17,
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET pay = t.pay + 1"
        f" WHEN NOT MATCHED BY SOURCE AND t.pay <> {CANARY} THEN UPDATE SET name = '{TEXT}'"
        f" RETURNING merge_action(), t.id, t.pay = {CANARY}, t.name || '{TEXT}'",
    ),
    # The source's columns come first: x is protected.
    (
        17,
        "WITH m (x) AS (MERGE INTO s USING (SELECT pay FROM t WHERE id = 2) t ON s.id = 2"
        f" WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN DO NOTHING RETURNING *)"
        f" SELECT count(*) FROM m WHERE x = {CANARY}",
    ),
    (
        17,
        "WITH m (x) AS (MERGE INTO s USING (SELECT pay FROM t WHERE id = 2) t ON s.id = 2"
        f" WHEN MATCHED THEN UPDATE SET id = s.id RETURNING *) SELECT x = {CANARY} FROM m",
    ),
    (18, f"UPDATE t SET pay = pay + 1 WHERE id = 2 RETURNING old.pay = {CANARY}, new.pay"),
    (
        18,
        "DELETE FROM t WHERE id = 2 RETURNING WITH (OLD AS o, NEW AS n)"
        f" o.pay <> {CANARY}, n.pay IS NULL, o.name || '{TEXT}'",
    ),
]


@pytest.fixture
def both(app, plain_twin):
    for connection, family in ((app, "enc_"), (plain_twin, "")):
        connection.execute(f"CREATE TABLE t (id int, pay {family}int4, name {family}text)")
        connection.execute("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')")
        connection.execute("CREATE TABLE s (id int); INSERT INTO s VALUES (1), (2)")
    return app, plain_twin


@pytest.mark.parametrize(("since", "statement"), STATEMENTS)
def test_statement(stack, both, since, statement):
    app, twin = both
    expected = run(twin, statement)
    sizes = stack.log_sizes()
    got = run(app, statement)
    logged = stack.logged_since(sizes)
    assert str(CANARY) not in logged
    assert TEXT not in logged
    if app.info.server_version >= since * 10000:
        assert expected.sqlstate is None, expected
        assert got.same(expected)
    else:
        assert expected.sqlstate is not None
        assert got.sqlstate is not None


REFUSED = [
    f"SELECT JSON_OBJECT('k': name || '{TEXT}') FROM t",
    f"SELECT JSON_ARRAY(name, '{TEXT}') FROM t",
    f"SELECT JSON_SCALAR(name || '{TEXT}') FROM t",
    f"SELECT JSON_VALUE(name, '$.\"{TEXT}\"') FROM t",
    f"SELECT 1 FROM t, JSON_TABLE(jsonb '\"{TEXT}\"', '$' COLUMNS (a text PATH '$')) j",
    "SELECT 1 FROM t WHERE pay = 0x2B850F2E",
    f"SELECT casefold(name) = '{TEXT}' FROM t",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_refused(stack, both, statement):
    app, _ = both
    sizes = stack.log_sizes()
    assert run(app, statement).sqlstate == "0A000"
    logged = stack.logged_since(sizes)
    assert TEXT not in logged
    assert "0x2B850F2E" not in logged

"""Programs that a session has registered are not dropped before the message that uses them is sent.

Mechanism: a session keeps some hundred programs; if another does not fit, all others are dropped. A
message may use several. Bug: the space runs out between two of them, the first is dropped, and the
statement fails with 42883, "no such program"; the next attempt succeeds.
"""

from itertools import product

import pytest
from results import plain, run

DDL = "CREATE TABLE t (i int, a enc_int8, b enc_int8)"
ROWS = "INSERT INTO t SELECT n, n, n * 3 FROM generate_series(1, 50) n"


@pytest.fixture
def both(app, plain_twin):
    for connection in (app, plain_twin):
        connection.execute(DDL if connection is app else plain(DDL))
        connection.execute(ROWS)
    app.execute("SET confide.round_trip_cost = 0")
    return app, plain_twin


def expressions():
    """Expressions with different shapes, so each is a program."""
    for signs in product("+-*", repeat=7):
        yield "a" + "".join(f" {sign} {'ab'[n % 2]}" for n, sign in enumerate(signs))


def agree(both, query):
    protected, expected = (run(connection, query) for connection in both)
    assert protected.sqlstate is None, protected.message
    assert protected.same(expected)


@pytest.mark.parametrize("count", [150, 300])
def test_many_in_a_message(both, count):
    """300 are more than are kept, and more than fit in a message."""
    shapes = expressions()
    for _ in range(4):
        columns = ", ".join(next(shapes) for _ in range(count))
        query = f"SELECT i, {columns} FROM t WHERE a > 0 ORDER BY i"
        agree(both, query)


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize(
    "shape",
    ["SELECT i, {} FROM t WHERE a > 0 ORDER BY i", "SELECT i % 3, {} FROM t GROUP BY 1 ORDER BY 1"],
)
def test_long_series(both, count, shape):
    """Consecutive statements: in one of them the space runs out between its programs."""
    shapes = expressions()
    for _ in range(600 // count):
        some = [next(shapes) for _ in range(count)]
        if "GROUP" in shape:
            some = [f"max({expression})" for expression in some]
        agree(both, shape.format(", ".join(some)))


def test_while_a_cursor_is_open(both):
    """Its programs are dropped while it is partially read, and registered again."""
    shapes = expressions()
    query = f"SELECT i, {next(shapes)}, {next(shapes)} FROM t WHERE {next(shapes)} <> 7 ORDER BY i"
    fetched = []
    for connection in both:
        with connection.transaction(), connection.cursor("c") as cursor:
            cursor.execute(query)
            rows = cursor.fetchmany(5)
            for _ in range(4):
                columns = ", ".join(next(shapes) for _ in range(100))
                connection.execute(f"SELECT {columns} FROM t")
                rows += cursor.fetchmany(10)
            fetched.append(rows + cursor.fetchall())
    assert fetched[0] == fetched[1]


def test_plan_carries_its_program(both):
    """A qual is compiled once, by the planner: the plan contains the program, so executing a
    prepared plan does not compile. Parallel workers get the plan as text, so it must survive that.
    Bug: the plan contains only the qual."""
    app, _ = both
    plans = []
    app.add_notice_handler(lambda notice: plans.append(notice.message_detail or ""))
    query = "SELECT i FROM t WHERE a * b > 120 AND b <> 6 ORDER BY i"
    app.execute("SET debug_print_plan = on; SET client_min_messages = log")
    agree(both, query)
    app.execute("RESET client_min_messages; RESET debug_print_plan")
    program = "holds(gt_int8_int4(mul_int8_int8("
    plan = "".join("".join(plans).replace("\\", "").split())
    assert program in plan, plan[:20000]
    app.execute("SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0")
    agree(both, query)
    app.execute("SET plan_cache_mode = force_generic_plan")
    query = "SELECT i FROM t WHERE a * b > %s ORDER BY i"
    for bound in (20, 40, 20):
        rows = [connection.execute(query, [bound], prepare=True).fetchall() for connection in both]
        assert rows[0]
        assert rows[0] == rows[1]

"""Common parts of the tests of delivery envelopes: counts how often a statement waits for the
keeper. The session's role needs pg_monitor."""

# More turns than anything that ends a period comes between: a collection by another test's VACUUM.
TURNS = 20


def waits(connection) -> int:
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'session.answered_total'"
    return int(connection.execute(query).fetchone()[0])


def counted(connection, sql):
    """The rows, and how often the statement waited for the keeper."""
    before = waits(connection)
    rows = connection.execute(sql).fetchall()
    return rows, waits(connection) - before - 1


def in_some_turn(turn):
    """Until a turn gives 0: what something may come between, it comes not between each time."""
    counts = []
    for i in range(TURNS):
        counts.append(turn(i))
        if counts[-1] == 0:
            return
    raise AssertionError(f"each statement waits: {counts}")


def warm(connection, sql, rows):
    """Runs a query until nothing is asked; its rows are these each time."""

    def turn(_):
        found, count = counted(connection, sql)
        assert found == rows
        return count

    in_some_turn(turn)

"""A keeper that is killed loses nothing of the families rnd_ and soft_.

Mechanism: their rows hold the values, sealed or encoded. Right answer: every acknowledged row, as
it was, and further statements work. With a bug a cell names something that only the keeper had.
"""

import pytest

ROWS = [(i, f"text {i % 50}", i * 7) for i in range(500)]


def answers(connection):
    queries = [
        "SELECT * FROM kept ORDER BY id",
        "SELECT name, count(*) FROM kept WHERE pay = 77 OR name = 'text 3' GROUP BY 1 ORDER BY 2",
        "SELECT sum(pay), min(pay), max(pay) FROM kept",
        "SELECT id FROM kept WHERE pay < 100 ORDER BY pay",
    ]
    return [connection.execute(query).fetchall() for query in queries]


@pytest.mark.parametrize("family", ["rnd", "soft"])
def test_killed(stack, app, schema, family):
    """With an open transaction, and rows on their way."""
    app.execute(f"CREATE TABLE kept (id int PRIMARY KEY, name {family}_text, pay {family}_int4)")
    with app.cursor().copy("COPY kept FROM STDIN") as copy:
        for row in ROWS:
            copy.write_row(row)
    app.execute("CREATE INDEX ON kept (pay)")
    before = answers(app)
    assert before[0] == ROWS
    app.execute("BEGIN")
    app.execute("INSERT INTO kept VALUES (-1, 'not committed', 1)")
    stack.kill_keeper()
    stack.up()
    app.close()
    options = f"-c search_path={schema}"
    with stack.connect_app(options=options) as connection:
        assert answers(connection) == before
        connection.execute("UPDATE kept SET pay = 3 WHERE name = 'text 9'")
        found = connection.execute("SELECT count(*) FROM kept WHERE pay = 3").fetchone()
        assert found == (10,)

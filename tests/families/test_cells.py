"""The family rnd_: columns whose rows contain sealed cells.

Mechanism: a cell is sealed for its column when it is written, and opened into a temporary value for
computations. Right: PostgreSQL's results on the plain twin. Bug: values are stored loose and vanish
after their statement, or operators are not found.
"""

import pytest

ROWS = [
    (1, "Ann", 5200),
    (2, "Bob", 4100),
    (3, None, 5200),
    (4, "Cleo", None),
    (5, "Ann", -7),
]


@pytest.fixture
def staff(app):
    app.execute("CREATE TABLE staff (id int PRIMARY KEY, name rnd_text, salary rnd_int4)")
    for row in ROWS:
        app.execute("INSERT INTO staff VALUES (%s, %s, %s)", row)
    return app


def test_values_return(staff, dba):
    """What was written is read; the superuser reads cells."""
    assert staff.execute("SELECT * FROM staff ORDER BY id").fetchall() == ROWS
    raw = dba.execute("SELECT * FROM staff ORDER BY id").fetchall()
    assert all(v is None or str(v).startswith("cell1.") for row in raw for v in row[1:])
    assert len({row[2] for row in raw if row[2]}) == 4


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM staff WHERE salary = 5200 ORDER BY id",
        "SELECT id FROM staff WHERE salary > 0 AND name = 'Ann'",
        "SELECT id FROM staff WHERE name LIKE 'A%' ORDER BY id",
        "SELECT id, salary + 1 FROM staff ORDER BY id",
        "SELECT salary FROM staff ORDER BY salary, id",
        "SELECT name FROM staff ORDER BY name DESC NULLS LAST, id",
        "SELECT name, count(*) FROM staff GROUP BY name ORDER BY name",
        "SELECT DISTINCT salary FROM staff ORDER BY salary",
        "SELECT sum(salary), min(salary), max(name), avg(salary), count(salary) FROM staff",
        "SELECT a.id, b.id FROM staff a JOIN staff b ON a.salary = b.salary ORDER BY 1, 2",
        "SELECT id FROM staff a WHERE name IN (SELECT name FROM staff b WHERE b.id > a.id)",
        "SELECT id FROM staff WHERE salary IN (5200, -7) ORDER BY id",
        "SELECT id FROM staff WHERE salary BETWEEN 0 AND 5000",
        "SELECT name || '!', upper(name), length(name) FROM staff ORDER BY id",
        "SELECT coalesce(salary, 0) FROM staff ORDER BY id",
        "SELECT nullif(id, salary), nullif(salary, id), nullif(salary, 5) FROM staff ORDER BY id",
        "SELECT id * salary, salary - id, abs(-salary), 2 ^ id, round(salary / 3.0, 2) FROM staff",
        "SELECT CASE WHEN salary > 5000 THEN name ELSE 'x' END FROM staff ORDER BY id",
        "SELECT id FROM staff WHERE name IS NULL",
        "SELECT salary::bigint * 2 FROM staff ORDER BY id",
    ],
)
def test_as_plain(staff, plain_twin, query):
    plain_twin.execute('CREATE TABLE staff (id int PRIMARY KEY, name text COLLATE "C", salary int)')
    for row in ROWS:
        plain_twin.execute("INSERT INTO staff VALUES (%s, %s, %s)", row)
    assert staff.execute(query).fetchall() == plain_twin.execute(query).fetchall()

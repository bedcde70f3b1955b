"""The keeper's caches for the family rnd_: opened cells, and answers about them.

Mechanism: the value in a cell that was opened lately is found by the cell's bytes, the answer to a
question by all that it depends on; whoever asks is checked as without a cache. Right: the same
results with fewer cells opened, and the same refusals. Bug: what one session has opened is
told to another one that may not see it, under a key that ended, or for another question.
"""

import psycopg
import pytest
from principals import three  # noqa: F401
from test_rotation import rotated

ROWS = 1500


@pytest.fixture(scope="module", autouse=True)
def keeping(stack):
    """The keeper of the other tests keeps no cells."""
    stack.environment["CONFIDE_KEEPER_CELL_CACHE"] = "16MB"
    stack.kill_keeper()
    stack.up()
    yield
    del stack.environment["CONFIDE_KEEPER_CELL_CACHE"]
    stack.kill_keeper()
    stack.up()


def counter(dba, name):
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = %s"
    return int(dba.execute(query, [name]).fetchone()[0])


def fill(connection, table):
    connection.execute(
        f"CREATE TABLE {table} (id int, n rnd_int4, name rnd_text, seen rnd_timestamptz)"
    )
    with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
        for i in range(ROWS):
            copy.write_row((i, i % 1000, f"name {i % 70}", f"2020-01-{i % 28 + 1:02} 23:30:00+00"))
    connection.execute(f"ANALYZE {table}")


def expected(condition):
    return [(i,) for i in range(ROWS) if condition(i)]


def test_opened_once(app, dba):
    """The second time every cell is found; one that was altered is not, though its tag is known."""
    fill(app, "cached")
    query = "SELECT id FROM cached WHERE n > 990 ORDER BY id"
    assert app.execute(query).fetchall() == expected(lambda i: i % 1000 > 990)
    hits, misses = (counter(dba, f"cell_cache_{what}_total") for what in ("hits", "misses"))
    assert app.execute(query).fetchall() == expected(lambda i: i % 1000 > 990)
    assert counter(dba, "cell_cache_hits_total") - hits >= ROWS
    assert counter(dba, "cell_cache_misses_total") - misses < ROWS // 10
    assert 0 < counter(dba, "cell_cache_bytes") <= 16 << 20
    (cell,) = dba.execute("SELECT n FROM cached WHERE id = 1").fetchone()
    with dba.cursor().copy("COPY cached (id, n) FROM STDIN") as copy:
        copy.write_row((-1, cell[:60] + ("A" if cell[60] != "A" else "Q") + cell[61:]))
    with pytest.raises(psycopg.errors.DataCorrupted):
        app.execute("SELECT n FROM cached WHERE id = -1").fetchall()


def test_not_for_another_column(app, second, dba):
    """A cell that its own session has opened, pasted where another one may look."""
    fill(app, "cached")
    app.execute("CREATE TABLE notes (id int, body rnd_text)")
    app.execute("INSERT INTO notes VALUES (1, 'mine')")
    (cell,) = dba.execute("SELECT name FROM cached WHERE id = 1").fetchone()
    hits = counter(dba, "cell_cache_hits_total")
    for _ in range(2):
        assert app.execute("SELECT name FROM cached WHERE id = 1").fetchall() == [("name 1",)]
    assert counter(dba, "cell_cache_hits_total") > hits
    with dba.cursor().copy("COPY notes FROM STDIN") as copy:
        copy.write_row((2, cell))
    assert second.execute("SELECT body FROM notes WHERE id = 1").fetchall() == [("mine",)]
    for query in ("SELECT body FROM notes", "SELECT id FROM notes WHERE body > 'a'"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            second.execute(query).fetchall()


def test_not_under_an_ended_key(stack, app, dba, schema):
    """The cell is in the cache, and its key has ended."""
    fill(app, "cached")
    (old,) = dba.execute("SELECT name FROM cached WHERE id = 5").fetchone()
    for _ in range(2):
        assert app.execute("SELECT name FROM cached WHERE id = 5").fetchall() == [("name 5",)]
    rotated(stack, f"{schema}.cached.name")
    with dba.cursor().copy("COPY cached (id, name) FROM STDIN") as copy:
        copy.write_row((-7, old))
    for query in (
        "SELECT name FROM cached WHERE id = -7",
        "SELECT id FROM cached WHERE name > 'z'",
    ):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            app.execute(query).fetchall()


# ---------- answers ----------


@pytest.fixture
def owned(three, request):  # noqa: F811
    """A table of ann's, with a keeper that keeps answers, and no cells. Each test has its own:
    a column's owner stays when a table is dropped."""
    stack = three.stack
    ours = {"CONFIDE_KEEPER_ANSWER_CACHE": "8MB", "CONFIDE_KEEPER_CELL_CACHE": "0"}
    if "CONFIDE_KEEPER_ANSWER_CACHE" not in stack.environment:
        stack.environment.update(ours)
        stack.kill_keeper()
        # Not by "up", which writes the list of clients anew.
        stack.start_keeper(**stack.environment)
    three.table = f"public.{request.node.name}"
    with three.connect("ann") as ann:
        fill(ann, three.table)
        ann.execute(f"GRANT SELECT ON {three.table} TO bob, eve")
        with three.connect("boss") as boss:
            for column in ("n", "seen"):
                boss.execute(f"GRANT OWNER {three.table}.{column} TO ann")
    return three


def answered_before(dba):
    return counter(dba, "answer_cache_hits_total")


def question(owned, limit):
    return f"SELECT id FROM {owned.table} WHERE n > {limit} ORDER BY id"


def test_the_same_question(owned):
    """Is answered from the cache, another one is not; and no cell is kept where none should be."""
    with owned.stack.connect_dba() as dba, owned.connect("ann") as ann:
        for limit in (500, 501, 500):
            wanted = expected(lambda i, limit=limit: i % 1000 > limit)
            assert ann.execute(question(owned, limit)).fetchall() == wanted
        hits = answered_before(dba)
        assert ann.execute(question(owned, 500)).fetchall() == expected(lambda i: i % 1000 > 500)
        assert answered_before(dba) > hits
        ann.execute(f"UPDATE {owned.table} SET n = 999 WHERE id = 3")
        rows = ann.execute(question(owned, 500)).fetchall()
        assert rows == expected(lambda i: i == 3 or i % 1000 > 500)
        assert counter(dba, "cell_cache_hits_total") == counter(dba, "cell_cache_bytes") == 0


def test_settings_are_part_of_the_question(owned):
    """Half past eleven in London is the next day in Paris."""
    query = f"SELECT id FROM {owned.table} WHERE seen::enc_date = '2020-01-02' ORDER BY id"
    with owned.stack.connect_dba() as dba, owned.connect("ann") as ann:
        hits = answered_before(dba)
        for zone, day in (("Europe/London", 2), ("Europe/Paris", 1), ("Europe/London", 2)):
            ann.execute(f"SET timezone = '{zone}'")
            wanted = expected(lambda i, day=day: i % 28 + 1 == day)
            assert ann.execute(query).fetchall() == wanted
        assert answered_before(dba) > hits


def test_only_for_viewers(owned):
    """The answer is there, but not for everybody, and not for a viewer who is none any more."""
    asked, wanted = question(owned, 900), expected(lambda i: i % 1000 > 900)
    with (
        owned.stack.connect_dba() as dba,
        owned.connect("ann") as ann,
        owned.connect("bob") as bob,
        owned.connect("eve") as eve,
    ):
        for _ in range(2):
            assert ann.execute(asked).fetchall() == wanted
        ann.execute(f"GRANT VIEWER ON {owned.table}.n TO bob")
        hits = answered_before(dba)
        assert bob.execute(asked).fetchall() == wanted
        assert answered_before(dba) > hits
        ann.execute(f"REVOKE VIEWER ON {owned.table}.n FROM bob")
        for other in (bob, eve):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                other.execute(asked).fetchall()


def test_no_answer_under_an_ended_key(owned):
    """The same cells as when the question was asked first, but their key has ended."""
    asked = question(owned, 800)
    url = f"postgresql://ann:x@127.0.0.1:{owned.port}/app"
    with owned.stack.connect_dba() as dba, owned.connect("ann") as ann:
        old = dba.execute(f"SELECT id, n FROM {owned.table} ORDER BY ctid").fetchall()
        # The same bytes in the same rows, as after the change of the key.
        for turn in range(2):
            dba.execute(f"TRUNCATE {owned.table}")
            with dba.cursor().copy(f"COPY {owned.table} (id, n) FROM STDIN") as copy:
                for row in old:
                    copy.write_row(row)
            if turn == 0:
                for _ in range(2):
                    assert len(ann.execute(asked).fetchall()) > 0
                rotated(owned.stack, f"{owned.table}.n", url=url)
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            ann.execute(asked).fetchall()

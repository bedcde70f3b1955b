"""Values of columns that were sealed once are returned to all who may see them, without a request.

Mechanism: a column's key comes with one of its values; from the next statement on, its values are
requested as delivery envelopes, kept in shared memory, and found there. Right: the values of the
rows, in any order of operations, and the numbers of waits below. Bug: a wait for each value; or the
value that an identifier had before, or an envelope that its client cannot open.
"""

import psycopg
import pytest
from delivered import counted, in_some_turn
from garbage import collect, slots

DDL = """
CREATE TABLE d (id int PRIMARY KEY, name enc_text, amount enc_numeric(12,2), n enc_int4,
                at enc_timestamptz, long enc_text);
INSERT INTO d SELECT g, 'name ' || g::text, g * 1.25, g * 7, '2026-01-02 03:04:05+00',
                     'l' || (g * 10)::text FROM generate_series(1, 400) g;
"""
ONE = "SELECT name, amount, n FROM d WHERE id = %s"


def row(i):
    return (f"name {i}", i * 125 / 100, i * 7)


@pytest.fixture
def filled(app, dba):
    dba.execute("GRANT pg_monitor TO app")
    app.execute(DDL)
    yield app
    dba.execute("REVOKE pg_monitor FROM app")


def selected(connection, i):
    rows, count = counted(connection, ONE % i)
    assert [(name, float(amount), n) for name, amount, n in rows] == [row(i)]
    return count


def delivered(connection):
    """How many delivery envelopes the keeper has made."""
    query = "SELECT value FROM confide.confide_stat_keeper WHERE name = 'delivered_total'"
    return int(connection.execute(query).fetchone()[0])


def warm(connection, i):
    in_some_turn(lambda _: selected(connection, i))


def test_waits(filled, second):
    warm(filled, 5)
    # Another session gets the keys with its first statement, and what the first one has asked for.
    warm(second, 5)
    # What is not kept is asked for once.
    counts = [selected(filled, 6) for _ in range(3)]
    assert counts[0] <= 1, counts
    assert 0 in counts[1:], counts
    # New values have identifiers of their own.
    filled.execute("UPDATE d SET n = n + 0, amount = amount * 1 WHERE id = 5")
    counts = [selected(second, 5) for _ in range(3)]
    assert counts[0] <= 1, counts
    assert 0 in counts[1:], counts
    # Prepared statements, cursors, and what is returned.
    with filled.transaction():
        filled.execute("DECLARE c CURSOR FOR SELECT id, name, n FROM d ORDER BY id LIMIT 9")
        found = [r for _ in range(3) for r in filled.execute("FETCH 3 FROM c").fetchall()]
    assert found == [(i, row(i)[0], row(i)[2]) for i in range(1, 10)]
    for _ in range(3):
        updated = filled.execute("UPDATE d SET id = id WHERE id = 8 RETURNING name, n").fetchall()
        assert updated == [(row(8)[0], row(8)[2])]
        text = filled.cursor(binary=True).execute("SELECT n, name FROM d WHERE id = 8").fetchall()
        assert text == [(row(8)[2], row(8)[0])]


WRITES = {
    "update": "UPDATE d SET name = 'x{i}', amount = {i}.5, n = {i} WHERE id = 5",
    "computed": "UPDATE d SET name = 'x' || '{i}', amount = {i} + 0.5, n = {i} + 0 WHERE id = 5",
    "inserted": "DELETE FROM d WHERE id = 5; INSERT INTO d VALUES (5, 'x{i}', {i}.5, {i})",
    "on conflict": "INSERT INTO d VALUES (5, 'x', 1) ON CONFLICT (id)"
    " DO UPDATE SET name = 'x{i}', amount = {i}.5, n = {i}",
    "indexed": "CREATE INDEX IF NOT EXISTS d_n ON d (n); DELETE FROM d WHERE id = 5;"
    " INSERT INTO d VALUES (5, 'x{i}', {i}.5, {i})",
}


@pytest.mark.parametrize("write", WRITES)
def test_just_written(filled, second, write):
    """A session that reads a column finds what it has written, and so do others that read the
    column. Bug: each value that was just written is requested once."""

    def turn(reader, i):
        for statement in WRITES[write].format(i=i).split(";"):
            filled.execute(statement)
        rows, count = counted(reader, ONE % 5)
        assert [(name, float(amount), n) for name, amount, n in rows] == [(f"x{i}", i + 0.5, i)]
        return count

    for reader in (filled, second):
        in_some_turn(lambda i, reader=reader: turn(reader, i))


def test_returned(filled):
    """RETURNING uses the envelopes that came with the promotion of a new row."""

    def turn(i):
        update = f"UPDATE d SET name = 'x{i}', n = {i} WHERE id = 5 RETURNING n, name"
        rows, count = counted(filled, update)
        assert rows == [(i, f"x{i}")]
        return count - 1

    in_some_turn(turn)


SHOWN = {
    "row": "SELECT name FROM d WHERE id = {i}",
    "locked": "SELECT name FROM d WHERE id = {i} FOR UPDATE",
    "some": "SELECT name FROM d WHERE id >= {i} ORDER BY id LIMIT 1",
    "joined": "SELECT a.name FROM d a JOIN d b ON b.id = a.id + 1 WHERE a.id = {i}",
}


@pytest.mark.parametrize("shown", SHOWN)
def test_beside(filled, second, shown):
    """Where a value of a row is requested, those of other columns that the session reads come with
    it. Bug: a statement that shows another column of the same row waits, too."""
    for reader in (filled, second):
        warm(reader, 5)
    rows = iter(range(10, 400, 2))  # the join reads the next row, too

    def turn(reader, _):
        i = next(rows)
        found, count = counted(filled, SHOWN[shown].format(i=i))
        assert (found, count) == ([(row(i)[0],)], 1)
        found, count = counted(reader, f"SELECT n, amount FROM d WHERE id = {i}")
        assert [(n, float(amount)) for n, amount in found] == [(row(i)[2], row(i)[1])]
        return count

    for reader in (filled, second):
        in_some_turn(lambda i, reader=reader: turn(reader, i))


def test_beside_unread(filled, dba):
    """What the session has not shown is not requested. Bug: the database gets envelopes of columns
    that the client's statements do not show."""
    in_some_turn(lambda i: counted(filled, "SELECT n FROM d WHERE id = 5")[1])
    before = delivered(dba)
    for i in range(10, 30):
        assert filled.execute(f"SELECT n FROM d WHERE id = {i}").fetchall() == [(i * 7,)]
    assert delivered(dba) - before <= 20


def test_memory(dba):
    """The table has an eighth of shared_buffers if nobody says otherwise."""
    query = "SELECT setting::int, boot_val FROM pg_settings WHERE name = %s"
    (pages, _), (kilobytes, boot) = (
        dba.execute(query, [name]).fetchone()
        for name in ("shared_buffers", "confide.delivery_memory")
    )
    assert (kilobytes * 8, boot) == (pages * 8, "-1")


def test_more_than_fits(filled, second, dba):
    """More values, of all lengths, than there is memory for. Right: each row, and what was read
    last is kept. Bug: what is kept in one set is overwritten by what has no room in another."""
    count, at_once = 80000, 128
    filled.execute(
        "CREATE TABLE many (id int PRIMARY KEY, t enc_text, n enc_int4);"
        "INSERT INTO many SELECT g, repeat('x', g % 190) || g::text, g"
        f" FROM generate_series(1, {count}) g"
    )
    memory = int(filled.execute("SHOW confide.delivery_memory").fetchone()[0].removesuffix("MB"))
    assert count * 250 > memory * 1024 * 1024

    def read(connection, start):
        query = f"SELECT id, t, n FROM many WHERE id BETWEEN {start} AND {start + at_once - 1}"
        found = sorted(connection.execute(query).fetchall())
        assert found == [(i, "x" * (i % 190) + str(i), i) for i in range(start, start + at_once)]

    starts = range(1, count - at_once, at_once)
    for start in starts:
        read(filled, start)
        read(filled, 1)
    for start in [*starts[-20:], *starts[:20]]:
        read(second, start)

    def turn(_):
        last = starts[-150:]
        for start in last:
            read(filled, start)
        before = delivered(dba)
        for start in last:
            read(filled, start)
        return delivered(dba) - before > len(last) * at_once * 2 / 8

    in_some_turn(turn)


def test_written_only(filled, dba, second):
    """If a session does not read a column, nothing is sealed when it writes the column, even if
    others read it. Bug: a session that only loads pays for envelopes."""
    warm(second, 5)
    before = delivered(dba)
    assert before > 0
    for i in range(10):
        filled.execute(f"UPDATE d SET name = 'x{i}', amount = {i}.5 WHERE id = 5")
    assert delivered(dba) == before


def test_off(filled):
    warm(filled, 9)
    filled.execute("SET confide.delivery = off")
    assert [selected(filled, 9) for _ in range(3)] == [1, 1, 1]
    filled.execute("RESET confide.delivery")
    warm(filled, 9)


def test_same_results(filled):
    """Few rows, many rows, long values, expressions, copies: the same with and without."""
    filled.execute("UPDATE d SET long = repeat(long, 200) WHERE id % 50 = 0")
    filled.execute("UPDATE d SET name = NULL WHERE id % 7 = 0")
    queries = [
        "SELECT * FROM d WHERE id BETWEEN 95 AND 105 ORDER BY id",
        "SELECT * FROM d WHERE id < 60 ORDER BY id",
        "SELECT * FROM d ORDER BY id",
        "SELECT n + 1, n, amount * 2, name, n FROM d WHERE id IN (1, 7, 49) ORDER BY id",
        "SELECT id, n, (SELECT name FROM d e WHERE e.id = d.id) FROM d WHERE id < 9 ORDER BY id",
        "SELECT max(n), min(name) FROM d",
    ]
    for query in queries:
        filled.execute("SET confide.delivery = off")
        expected = filled.execute(query).fetchall()
        filled.execute("RESET confide.delivery")
        for _ in range(4):
            assert filled.execute(query).fetchall() == expected
    for _ in range(2):
        with filled.cursor().copy("COPY (SELECT n FROM d WHERE id < 4 ORDER BY id) TO STDOUT") as c:
            assert [r[0] for r in c.rows()] == ["7", "14", "21"]


def test_errors_in_between(filled):
    """A key that was being sent when a statement failed has not arrived, and is not used."""
    fails = "SELECT id, n, name, 1 / (id - 3) FROM d WHERE id < 5 ORDER BY id"
    for step in range(8):
        if step % 2 == 0:
            with pytest.raises(psycopg.errors.DivisionByZero):
                filled.execute(fails)
        with filled.transaction():
            filled.execute("SAVEPOINT s")
            with pytest.raises(psycopg.errors.DivisionByZero):
                filled.execute("SELECT n, 1 / (n - 7), name FROM d WHERE id = 1")
            filled.execute("ROLLBACK TO s")
            assert filled.execute("SELECT n, name FROM d WHERE id = 1").fetchall() == [
                (7, "name 1")
            ]
        selected(filled, 2)
    warm(filled, 2)


def test_freed_identifiers(filled, dba, second):
    """Identifiers of freed values are reused for others. Bug: whoever reads the new rows is shown
    the old values, which are still kept."""
    for i in range(1, 30):
        warm(filled, i)
        warm(second, i)
    for turn in range(3):
        held = slots(dba, "d")
        filled.execute("DELETE FROM d WHERE id < 200")
        filled.execute("VACUUM d")
        collect(dba, "d")
        assert slots(dba, "d") < held
        dba.execute("SELECT confide.checkpoint()")  # only now are they given out again
        filled.execute(
            "INSERT INTO d SELECT g, 'name ' || g::text, g * 1.25, g * 7, now(), 'x'"
            f" FROM generate_series(199, 1, -1) g ORDER BY (g * {31 + turn}) % 199"
        )
        for connection in (filled, second):
            for i in range(1, 30):
                selected(connection, i)
                selected(connection, i)
    warm(filled, 7)


def test_dropped_columns(filled, second):
    """A table is dropped, and another one is created."""
    warm(filled, 5)
    warm(second, 5)
    for turn in range(1, 4):
        filled.execute("DROP TABLE d")
        filled.execute(
            "CREATE TABLE d (id int, name enc_text, amount enc_numeric(12,2), n enc_int4)"
        )
        filled.execute(
            "INSERT INTO d SELECT g, 'name ' || g::text, g * 1.25, g * 7"
            f" FROM generate_series(1, 50) g ORDER BY (g * {turn}) % 7"
        )
        for connection in (filled, second, filled, second):
            selected(connection, 5)


def test_written_and_freed(filled, dba, second):
    """The same for values that came with their promotion and were never requested: in rows that
    were deleted and collected, and in a table that was dropped."""
    for turn in range(4):
        for connection in (filled, second):
            warm(connection, 300)
        if turn % 2 == 0:
            filled.execute("DELETE FROM d WHERE id < 40")
            filled.execute("VACUUM d")
            collect(dba, "d")
        else:
            filled.execute("DROP TABLE d")
            filled.execute(DDL)
        ids = sorted(range(1, 40), key=lambda i, turn=turn: i * (7 + turn) % 41)
        filled.execute("DELETE FROM d WHERE id < 40")
        for i in ids:
            filled.execute(f"INSERT INTO d VALUES ({i}, 'name {i}', {i} * 1.25, {i} * 7)")
        for connection in (filled, second):
            for i in ids:
                selected(connection, i)


def test_other_client(filled, stack, schema, dba):
    """The superuser has no client: he gets what he always gets, and cannot import what was kept for
    others."""
    warm(filled, 5)
    sealed = dba.execute("SELECT n FROM d WHERE id = 5").fetchone()[0]
    assert sealed.startswith("cfd1.")
    again = dba.execute("SELECT n FROM d WHERE id = 5").fetchone()[0]
    assert sealed != again
    with stack.connect_dba() as bare, pytest.raises(psycopg.Error) as caught:
        # Magic, origin 4, int4, no flags; what follows could be anything.
        bare.execute(
            "SELECT 'cfd1.zwQDAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'::enc_int4"
        )
    assert caught.value.sqlstate == "22P02"


def test_new_sessions_on_one_connection(stack, filled, schema):
    """Each handshake starts a new client, even on a connection that was used before."""
    for _ in range(3):
        with stack.connect_app(options=f"-c search_path={schema}") as other:
            for _ in range(4):
                selected(other, 5)
            other.execute("DISCARD ALL")
            other.execute(f"SET search_path = {schema}")
            selected(other, 5)
            warm(other, 5)

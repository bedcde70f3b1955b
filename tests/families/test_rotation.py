"""A column of the family rnd_ gets a new key while it is in use (`confide rotate-column`).

Mechanism: cells have the generation of their key; the keeper seals with the newest, and opens older
ones only until the change is complete. Right: every row as it was, no change of a concurrent writer
lost, and afterwards a cell that was read before is refused wherever it is put. With a bug an old
cell is still opened, or a row is lost.
"""

import base64
import subprocess
import threading

import psycopg
import pytest
from principals import three  # noqa: F401
from stack import PG_BIN, ROOT, Stack
from waiting import until

ROWS = 2000


def confide(stack, column, *more, url=None):
    program = stack.data.parent / "bin" / "confide"
    command = [program, "rotate-column", column, "--bindir", PG_BIN]
    return [*command, "--dbname", url or stack.app_url, *more]


def rotated(stack, column, *more, url=None):
    done = subprocess.run(
        confide(stack, column, *more, url=url), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def filled(app, modifier=""):
    app.execute(
        f"CREATE TABLE kept (id int PRIMARY KEY, name rnd_text{modifier},"
        " pay rnd_numeric(10,2), other int)"
    )
    with app.cursor().copy("COPY kept FROM STDIN") as copy:
        for i in range(ROWS):
            copy.write_row((i, f"name {i % 100}", i, 0))
    app.execute("CREATE INDEX by_name ON kept (name)")
    app.execute("CREATE INDEX by_pay ON kept (pay)")


def generations(dba, column="name"):
    """How many cells there are of each generation, as a superuser sees them."""
    found = {}
    for (cell,) in dba.execute(f"SELECT {column} FROM kept WHERE {column} IS NOT NULL").fetchall():
        raw = base64.urlsafe_b64decode(cell.removeprefix("cell1.") + "===")
        number = int.from_bytes(raw[31:34], "little")
        found[number] = found.get(number, 0) + 1
    return found


def contents(app):
    return app.execute("SELECT id, name, pay FROM kept ORDER BY id").fetchall()


def by_index(app):
    app.execute("SET enable_seqscan = off")
    found = app.execute("SELECT count(*) FROM kept WHERE name = 'name 7'").fetchone()
    app.execute("SET enable_seqscan = on")
    return found


@pytest.mark.parametrize("modifier", ["", "(det)"])
def test_all_rows(stack, app, dba, schema, modifier):
    filled(app, modifier)
    before = contents(app)
    assert generations(dba) == {0: ROWS}
    said = rotated(stack, f"{schema}.kept.name", "--pages", "3")
    assert f"{ROWS} cells" in said
    assert (generations(dba), generations(dba, "pay")) == ({1: ROWS}, {0: ROWS})
    assert contents(app) == before
    assert by_index(app) == (ROWS // 100,)
    app.execute("INSERT INTO kept VALUES (-1, 'name 7', 1, 0)")
    app.execute("UPDATE kept SET name = 'name 7' WHERE id = 0")
    assert by_index(app) == (ROWS // 100 + 2,)
    # Once more, and a column with a modifier.
    rotated(stack, f"{schema}.kept.name")
    rotated(stack, f"{schema}.kept.pay")
    assert generations(dba) == {2: ROWS + 1}
    assert generations(dba, "pay") == {1: ROWS + 1}
    assert by_index(app) == (ROWS // 100 + 2,)


def pasted(dba, cell):
    dba.execute("DROP INDEX by_name")
    with dba.cursor().copy("COPY kept (id, name) FROM STDIN") as copy:
        copy.write_row((-7, cell))


def test_an_old_cell_is_refused(stack, app, dba, schema):
    """Also after the keeper was killed, and until the owner wants it back. A dump from before needs
    --accept-old."""
    filled(app)
    (old,) = dba.execute("SELECT name FROM kept WHERE id = 5").fetchone()
    rotated(stack, f"{schema}.kept.name")
    pasted(dba, old)
    for query in (
        "SELECT name FROM kept WHERE id = -7",
        "SELECT count(*) FROM kept WHERE name > 'z'",
    ):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as error:
            app.execute(query).fetchall()
        assert "--accept-old" in error.value.diag.message_hint
    stack.kill_keeper()
    stack.up()
    with stack.connect_app(options=f"-c search_path={schema}") as again:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            again.execute("SELECT name FROM kept WHERE id = -7").fetchall()
        rotated(stack, f"{schema}.kept.name", "--accept-old")
        assert again.execute("SELECT name FROM kept WHERE id = -7").fetchall() == [("name 5",)]
        assert "1 cells" in rotated(stack, f"{schema}.kept.name")
        assert generations(dba) == {1: ROWS + 1}
        assert again.execute("SELECT name FROM kept WHERE id = -7").fetchall() == [("name 5",)]


def test_writers_go_on(stack, app, dba, schema):
    """Each writer counts its own changes; all of them are there afterwards, and old cells are not,
    also where rows were copied or changed in other columns."""
    filled(app)
    stop, counts, errors = threading.Event(), [0, 0, 0], []

    def write(number):
        statements = [
            "UPDATE kept SET other = other + 1 WHERE id %% 100 = %s",
            "INSERT INTO kept SELECT -1000 - %s, name, pay, other FROM kept WHERE id = 3",
            "UPDATE kept SET name = 'changed' WHERE id = 500 + %s",
        ]
        with stack.connect_app(options=f"-c search_path={schema}") as connection:
            while not stop.is_set():
                try:
                    argument = 7 if number == 0 else counts[number]
                    connection.execute(statements[number], [argument])
                    counts[number] += 1
                except psycopg.errors.DeadlockDetected:
                    continue
                except psycopg.Error as error:
                    errors.append(error)
                    return

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    try:
        until(lambda: min(counts) > 0 or errors, "each writer has written")
        rotated(stack, f"{schema}.kept.name", "--pages", "2")
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert not errors
    changed, copied, renamed = counts
    assert set(generations(dba)) == {1}
    rows = app.execute("SELECT id, name, other FROM kept ORDER BY id").fetchall()
    assert {o for i, _, o in rows if i >= 0 and i % 100 == 7} == {changed}
    assert len(rows) == ROWS + copied
    expected = min(renamed, ROWS - 500)
    assert sum(name == "changed" for i, name, _ in rows if i >= 0) == expected


def test_killed_in_the_middle(stack, app, dba, schema):
    """The keeper, and the command; both kinds of cells are read, and the next attempt goes on."""
    filled(app)
    before = contents(app)
    running = subprocess.Popen(
        confide(stack, f"{schema}.kept.name", "--pages", "1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    for line in running.stdout:
        if b"page" in line:
            break
    stack.kill_keeper()
    running.kill()
    running.stdout.close()
    running.wait()
    stack.up()
    mixed = generations(dba)
    assert set(mixed) == {0, 1}
    with stack.connect_app(options=f"-c search_path={schema}") as again:
        assert contents(again) == before
        assert by_index(again) == (ROWS // 100,)
        again.execute("INSERT INTO kept VALUES (-1, 'name 7', 1, 0)")
        said = rotated(stack, f"{schema}.kept.name")
        assert f"{mixed[0]} cells" in said
        assert generations(dba) == {1: ROWS + 1}
        assert by_index(again) == (ROWS // 100 + 1,)


def test_a_snapshot_keeps_the_old_key(stack, app, dba, second, schema):
    """The end waits for transactions that may still see old cells, also without a lock."""
    filled(app)
    second.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    second.execute("SELECT 1")
    running = subprocess.Popen(
        confide(stack, f"{schema}.kept.name"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until(lambda: b"waiting" in running.stderr.readline(), "it waits")
    assert set(generations(dba)) == {1}
    assert len(second.execute("SELECT name FROM kept").fetchall()) == ROWS
    assert running.poll() is None
    second.execute("COMMIT")
    assert running.wait() == 0, running.stderr.read()


def test_copies_that_are_not_visible_yet(stack, app, dba, second, schema):
    """INSERT ... SELECT copies older cells; the end waits for the commit, and looks again."""
    filled(app)
    second.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    second.execute("SELECT 1 FROM kept LIMIT 1")
    running = subprocess.Popen(
        confide(stack, f"{schema}.kept.name"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until(lambda: b"waiting" in running.stderr.readline(), "it waits")
    second.execute("INSERT INTO kept SELECT -1 - id, name, pay, other FROM kept WHERE id < 10")
    assert generations(dba) == {1: ROWS}
    second.execute("COMMIT")
    assert running.wait() == 0, running.stderr.read()
    assert generations(dba) == {1: ROWS + 10}
    assert by_index(app) == (ROWS // 100 + 1,)


def test_not_without_the_command(stack, app, dba, schema):
    """Sealing anew takes a client, and a change that has begun; the statement is a client's."""
    filled(app)
    batch = "SELECT confide.rotate_batch('kept', 'name', 0, 100)"
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        app.execute(batch)
    app.execute(f"SELECT confide.rotate_key('{schema}.kept.name', 'begin')")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        dba.execute(batch)
    with pytest.raises(psycopg.Error):
        dba.execute(f"SELECT confide.rotate_key('{schema}.kept.name', 'end')")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        app.execute(f"SELECT confide.rotate_key('{schema}.kept.pay', 'end')")
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        app.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        app.execute(batch)


def test_a_copy_is_sealed_anew(app, dba, schema):
    """What comes from an expression is copied as it is, but not under an older key."""
    filled(app)
    copy = "INSERT INTO kept SELECT -{0}, CASE id WHEN 0 THEN NULL ELSE name END, pay, other"
    copy += " FROM kept WHERE id = {0}"
    app.execute(copy.format(1))
    app.execute(f"SELECT confide.rotate_key('{schema}.kept.name', 'begin')")
    app.execute("SELECT confide.rotate_announce('kept')")
    app.execute(copy.format(2))
    app.execute(copy.format(3))
    assert generations(dba) == {0: ROWS + 1, 1: 2}


def test_another_columns_cell_is_not_resealed(stack, app, dba, schema):
    """It would get the label of this column. The older keys stay until the row is corrected."""
    filled(app)
    app.execute("CREATE TABLE notes (id int, body rnd_text)")
    app.execute("INSERT INTO notes VALUES (1, 'secret')")
    (cell,) = dba.execute("SELECT body FROM notes").fetchone()
    pasted(dba, cell)
    done = subprocess.run(
        confide(stack, f"{schema}.kept.name"), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1
    assert "1 cells cannot be opened" in done.stderr
    dba.execute("DELETE FROM kept WHERE id = -7")
    rotated(stack, f"{schema}.kept.name")


def test_partitions(stack, app, dba, schema):
    app.execute("CREATE TABLE whole (id int, name rnd_text) PARTITION BY RANGE (id)")
    app.execute("CREATE TABLE kept PARTITION OF whole FOR VALUES FROM (0) TO (10)")
    app.execute("CREATE TABLE rest PARTITION OF whole DEFAULT")
    app.execute("INSERT INTO whole SELECT i, 'x'::enc_text FROM generate_series(1, 20) i")
    rotated(stack, f"{schema}.whole.name")
    assert generations(dba) == {1: 9}
    assert app.execute("SELECT count(*) FROM whole WHERE name = 'x'").fetchone() == (20,)
    done = subprocess.run(confide(stack, f"{schema}.kept.name"), capture_output=True, text=True)
    assert done.returncode == 1
    assert "whole" in done.stderr


def test_only_the_owner(three):  # noqa: F811
    stack = three.stack
    with three.connect("ann") as ann, three.connect("bob") as bob:
        ann.execute("CREATE TABLE public.kept (id int, name rnd_text)")
        ann.execute("GRANT ALL ON public.kept TO bob")
        ann.execute("INSERT INTO public.kept VALUES (1, 'x')")
        with three.connect("boss") as boss:
            boss.execute("GRANT OWNER public.kept.name TO ann")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            bob.execute("SELECT confide.rotate_key('public.kept.name', 'begin')")
        url = f"postgresql://ann:x@127.0.0.1:{three.port}/app"
        rotated(stack, "public.kept.name", url=url)
        ann.execute("SELECT confide.rotate_key('public.kept.name', 'begin')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            bob.execute("SELECT confide.rotate_key('public.kept.name', 'end')")
        ann.execute("SELECT confide.rotate_key('public.kept.name', 'end')")


def test_store_lost():
    """Without its store the keeper knows no generations, and opens all of them; the next change
    takes one that no cell has."""
    from test_killed_keeper import forget

    stack = Stack(ROOT / ".run" / "rotation-lost")
    stack.up()
    try:
        with stack.connect_app() as app:
            filled(app)
            before = contents(app)
            rotated(stack, "public.kept.name")
        forget(stack)
        with stack.connect_app() as app, stack.connect_dba() as dba:
            assert contents(app) == before
            rotated(stack, "public.kept.name")
            assert contents(app) == before
            assert set(generations(dba)) == {2}
            dba.execute("DROP TABLE kept")
    finally:
        stack.down("--remove")

"""Columns of arrays of protected values: garbage, restarts, dumps, sessions without a client.

Mechanism: an array is stored in its row, and each of its elements is an identifier of the column.
Right: each identifier on a page has a value, also after restarts and in a restored database;
elements that no row has any more are freed; without a client elements stay in their rows. Bug: a
collection that does not look into arrays frees living values.
"""

import threading

import pytest
from dumps import PSQL, another_database, restored, tool
from garbage import collect, slots, slowly, sound, vacuumed, verify
from results import run

QUERY = "SELECT id, tags, n FROM t ORDER BY id"


@pytest.fixture
def t(app):
    app.execute(
        "CREATE TABLE t (id int PRIMARY KEY, tags enc_text[], n enc_int4[], p text)"
        " WITH (autovacuum_enabled = off)"
    )
    with app.cursor().copy("COPY t FROM STDIN") as copy:
        for i in range(1000):
            copy.write(f'{i}\t{{Secrettag{i},NULL,"b {i % 3}"}}\t{{{i}}}\tplain\n')
    app.execute(
        "INSERT INTO t (id, tags, n) VALUES (1000, '{}', '{NULL}'), (1001, NULL, '{{1,2},{3,4}}')"
    )
    return app


def rows(connection):
    return run(connection, QUERY).rows


def test_garbage(t, dba):
    """Elements are freed with their rows, and with the versions that had them, not before."""
    dba.execute("SET confide.gc = off")
    assert slots(dba) == verify(dba)["table t"][0] == 3004
    before = rows(t)
    assert collect(dba) == 0
    assert rows(t) == before
    t.execute("UPDATE t SET p = 'moved' WHERE id < 500")
    t.execute("UPDATE t SET tags = tags || 'more'::enc_text WHERE id < 10")
    t.execute("BEGIN")
    t.execute("UPDATE t SET tags = '{rolled back}' WHERE id < 20")
    t.execute("ROLLBACK")
    assert collect(dba) == 0  # all versions are on their pages
    sound(dba)
    vacuumed(dba, "t", 20)
    assert slots(dba) == 3014
    t.execute("UPDATE t SET tags = tags[2:3] WHERE id >= 20 AND id < 120")
    t.execute("DELETE FROM t WHERE id >= 900")
    expected = rows(t)
    assert vacuumed(dba, "t", 404) == 404
    sound(dba)
    assert slots(dba) == 3014 - 404
    assert rows(t) == expected
    t.execute("TRUNCATE t")
    assert collect(dba) == 3014 - 404


def test_row_that_moves_while_it_is_looked_for(t, dba, second):
    """As test_garbage.py has it, for arrays."""
    collection = threading.Thread(target=collect_slowly, args=[dba])
    collection.start()
    moves = 0
    while collection.is_alive():
        second.execute(
            "UPDATE t SET p = repeat('x', %s) WHERE id = %s", [moves % 900, moves % 1000]
        )
        moves += 1
    collection.join()
    sound(dba)
    assert [row[1] for row in rows(t)][7] == '{Secrettag7,NULL,"b 1"}'
    assert moves > 10


def collect_slowly(dba):
    with slowly(dba, 2):
        collect(dba)


def test_rewritten_and_dropped(t, dba):
    """Rewrites keep identifiers; what they leave out, and dropped columns, are garbage."""
    expected = rows(t)
    t.execute("CLUSTER t USING t_pkey")
    t.execute("ALTER TABLE t ALTER id TYPE int8")
    dba.execute("VACUUM FULL t")
    assert collect(dba) == 0
    assert rows(t) == expected
    t.execute("ALTER TABLE t ALTER n TYPE enc_int8[]")
    collect(dba)
    assert rows(t) == expected
    assert slots(dba) == 3004
    t.execute("ALTER TABLE t DROP COLUMN tags")
    dba.execute("VACUUM t")
    collect(dba)
    assert slots(dba) == 1004
    sound(dba)


@pytest.mark.parametrize("how", ["keeper", "postgres", "both"])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_restart(stack, t, dba, second, schema, how, checkpoint):
    """What was committed is there, by row and by the batch."""
    if checkpoint:
        dba.execute("SELECT confide.checkpoint()")
    second.execute("INSERT INTO t (id, tags, n) VALUES (2000, '{late,NULL}', ARRAY[5])")
    second.execute("UPDATE t SET tags = array_append(tags, 'x') WHERE id < 50")
    expected = rows(t)
    if how != "postgres":
        stack.kill_keeper()
    if how != "keeper":
        stack.kill_postgres()
    stack.up()
    with stack.connect_app(options=f"-c search_path={schema}") as again:
        assert rows(again) == expected
        again.execute("UPDATE t SET tags = tags || tags WHERE id = 2000")
        assert run(again, "SELECT tags FROM t WHERE id = 2000").rows == [("{late,NULL,late,NULL}",)]
    with stack.connect_dba() as other:
        other.execute(f'SET search_path = "{schema}"')
        sound(other)
        collect(other)
    with stack.connect_app(options=f"-c search_path={schema}") as again:
        assert len(rows(again)) == len(expected)


@pytest.mark.parametrize(
    ("source", "target"), [("proxy", "proxy"), ("straight", "proxy"), ("straight", "straight")]
)
@pytest.mark.parametrize("form", ["plain", "inserts"])
def test_dump(stack, t, schema, source, target, form):
    """A dump made straight has envelopes for elements; restored either way, it has the rows."""
    t.execute("DELETE FROM t WHERE id < 980")
    t.execute("ALTER TABLE t ADD COLUMN more enc_text[]")
    t.execute("ALTER TABLE t ALTER more SET DEFAULT ARRAY['Secretdef', NULL]")
    t.execute("UPDATE t SET more = DEFAULT WHERE id < 1000")
    t.execute("ALTER TABLE t ADD CHECK ('Secretbad' <> ALL (tags))")
    t.execute("CREATE VIEW seen AS SELECT id, tags FROM t WHERE tags && ARRAY['Secrettag990']")
    t.execute("INSERT INTO t (id) VALUES (3000)")
    made = stack.app_url if source == "proxy" else stack.dba_url
    options = ["--rows-per-insert=7"] if form == "inserts" else []
    dump = tool("pg_dump", "-d", made, "-n", schema, *options)
    if source == "straight":
        assert b"Secret" not in dump
        assert dump.count(b"cfd1.") > 40
    with another_database(stack) as addresses:
        tool(*PSQL, addresses[target], stdin=dump, env=stack.restoring("restored"))
        with restored(addresses, schema) as other:
            for query in ("SELECT * FROM t ORDER BY id", "SELECT * FROM seen"):
                expected = run(t, query)
                assert expected.rows
                assert run(other, query).same(expected)
            assert run(other, "INSERT INTO t (id) VALUES (4000) RETURNING more").rows == [
                ("{Secretdef,NULL}",)
            ]
            bad = "INSERT INTO t (id, tags) VALUES (4001, '{Secretbad}')"
            if target == "proxy":
                assert run(other, bad).sqlstate == "23514"


MOVES = [
    "UPDATE t SET tags = (SELECT tags FROM t WHERE id = 7) WHERE id = 8",
    "UPDATE t SET tags[1] = (SELECT tags[1] FROM t WHERE id = 7) WHERE id = 8",
    "INSERT INTO t (id, tags) SELECT 5000, tags FROM t WHERE id = 7",
    "INSERT INTO t (id, n) SELECT 5000, ARRAY[n[1]] FROM t WHERE id = 7",
    "CREATE TABLE copied AS SELECT tags FROM t",
    "INSERT INTO single SELECT tags[1] FROM t WHERE id = 7",
]


@pytest.mark.parametrize("statement", MOVES)
def test_values_stay_without_a_client(t, dba, statement):
    """Bug: a superuser brings a victim's element into a row that he may read."""
    t.execute("CREATE TABLE single (s enc_text)")
    before = rows(t)
    assert run(dba, statement).sqlstate == "42501"
    assert rows(t) == before


def test_rows_may_move_without_a_client(t, dba):
    """Changes of other columns, and elements that stay in their row."""
    before = rows(t)
    dba.execute("UPDATE t SET p = 'changed'")
    dba.execute("UPDATE t SET tags = ARRAY[tags[3], tags[1]] WHERE id = 5")
    expected = [(i, '{"b 2",Secrettag5}', n) if i == "5" else (i, g, n) for i, g, n in before]
    assert rows(t) == expected
    assert "cfd1." in str(dba.execute("SELECT tags FROM t WHERE id = 7").fetchone())

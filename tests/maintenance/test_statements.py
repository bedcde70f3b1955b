"""Recordings of some statements only, chosen by the identifiers of their queries, which
pg_stat_statements and pg_stat_activity show.

Mechanism: the server tells the keeper which statement its messages are of while such a recording
runs; constants, which arrive before their statement is known, wait aside. Right: the recording has
the messages of these statements and no others, and a statement that was recorded replays in a
clone. Bug: everything is recorded, or constants, programs or pages that came before are missing, so
that the replayer refuses the statement.
"""

import pytest
from clones import Clone
from recordings import Recorder, statements
from results import run
from stack import POSTGRES, ROOT, Stack

LOADED = "shared_preload_libraries = 'confide, pg_stat_statements'\n"
WANTED = "SELECT id, name FROM person WHERE name LIKE 'wanted 1%' AND pay * 2 > 20 ORDER BY pay"
POINT = "SELECT id, name FROM person WHERE name = 'wanted 177'"
OTHER = "SELECT count(*) FROM person WHERE pay < 150 AND name <> 'unwanted'"
PREPARED = "SELECT count(*) FROM person WHERE name > 'wanted 2' AND pay <> 77"


@pytest.fixture(scope="module")
def told(stack):
    made = Stack(ROOT / ".run" / f"{stack.run.name}-statements", POSTGRES + LOADED)
    made.environment["CONFIDE_KEEPER_ADMINISTRATORS"] = "app"
    made.up()
    with made.connect_dba() as dba:
        dba.execute("CREATE EXTENSION pg_stat_statements SCHEMA public")
        dba.execute("GRANT pg_monitor TO app")
    with made.connect_app() as app:
        app.execute("CREATE TABLE person (id int PRIMARY KEY, name enc_text, pay enc_int8)")
        app.execute(
            "INSERT INTO person SELECT i, 'wanted ' || i::text, i FROM generate_series(1, 300) i"
        )
        app.execute("CREATE INDEX person_name ON person (name)")
        app.execute("VACUUM ANALYZE person")
        for query in (WANTED, OTHER, POINT, PREPARED):
            app.execute(query)
    yield made
    made.down("--remove")


@pytest.fixture
def recorder(told, tmp_path):
    made = Recorder(told, tmp_path)
    yield made
    made.confide("stop", *made.place())


def query_id(stack, text):
    """As pg_stat_statements has it; of an identifier, not of what a constant is."""
    with stack.connect_dba() as dba:
        query = "SELECT queryid FROM public.pg_stat_statements WHERE query LIKE %s"
        ((found,),) = dba.execute(query, [text]).fetchall()
    return found


def kinds(shown):
    return {line.split(" ")[1]: line for line in shown if line.startswith("kind ")}


def listed(shown):
    """The statements that a recording is of."""
    return {int(value) for name, value in shown.items() if name == "statement"}


def test_only_these(told, recorder):
    """Bug: what other statements asked is recorded, too."""
    wanted = query_id(told, "SELECT id, name FROM person WHERE name LIKE%")
    recorder.start("--statement", str(wanted))
    with told.connect_app() as app:
        assert app.execute(OTHER).fetchone() == (149,)
    recorder.stop()
    shown = recorder.shown()
    # Programs and partitions, which a later statement could have needed, and nothing else.
    assert set(kinds(shown)) <= {"ProgramRegister", "PartitionOpen"}
    recorder.key = recorder.folder / "second.key"
    recorder.start("--statement", str(wanted))
    with told.connect_app() as app:
        app.execute(OTHER)
        assert len(app.execute(WANTED).fetchall()) == 109
        app.execute(OTHER)
    recorder.stop()
    shown = recorder.shown()
    assert listed(shown) == {wanted}
    assert {"PutEnvelope", "GetEnvelopes"} <= set(kinds(shown))
    assert shown["lost"] == "0"


def test_by_pattern(told, recorder):
    """A text that the server knows; one that it does not know is refused, and no key stays."""
    refused = recorder.confide(
        "start", *recorder.place(), "--key", recorder.key, "--statement", "%no such statement%"
    )
    assert refused.returncode == 1
    assert "is like" in refused.stderr
    assert not recorder.key.exists()
    recorder.start("--statement", "SELECT id, name FROM person WHERE name LIKE%")
    with told.connect_app() as app:
        app.execute(WANTED)
        app.execute(OTHER)
    recorder.stop()
    wanted = query_id(told, "SELECT id, name FROM person WHERE name LIKE%")
    assert listed(recorder.shown()) == {wanted}


def test_identifiers_must_be_computed(stack, tmp_path):
    """Without them the keeper would never be told. Bug: the recording is empty, and nobody knows
    why."""
    stack.up()
    other = Recorder(stack, tmp_path)
    done = other.confide(
        "start", *other.place(), "--key", tmp_path / "other.key", "--statement", "5"
    )
    assert done.returncode == 1
    assert "compute_query_id" in done.stderr


def test_replays(told, recorder):
    """What is in such a recording is enough: a statement of a session that was there before, whose
    programs, index pages and plan it had made before; a prepared one with constants; the others are
    refused in the clone."""
    ids = [
        query_id(told, "SELECT id, name FROM person WHERE name LIKE%"),
        query_id(told, "SELECT id, name FROM person WHERE name = %"),
        query_id(told, "%SELECT count(*) FROM person WHERE name > %"),
    ]
    with told.connect_dba() as dba:
        dba.execute("ALTER ROLE app SET log_statement = 'all'")
        dba.execute("ALTER ROLE app SET log_duration = on")  # ends the text before
    with told.connect_app() as app:
        app.execute("SET enable_seqscan = off")
        sizes = told.log_sizes()
        app.execute(f"PREPARE prepared AS {PREPARED}")
        app.execute("EXECUTE prepared")
        for query in (WANTED, POINT, OTHER):
            app.execute(query)
        recorder.start(*(word for i in ids for word in ("--statement", str(i))))
        expected = {}
        texts = {"prepare": statements(told.logged_since(sizes))[0]}
        for query in (OTHER, WANTED, POINT, "EXECUTE prepared"):
            sizes = told.log_sizes()
            expected[query] = run(app, query)
            assert not expected[query].sqlstate
            texts[query] = statements(told.logged_since(sizes))[-1]
        recorder.stop()
    clone = Clone(told, recorder)
    try:
        with clone.connect("enable_seqscan = off") as connection:
            connection.execute(texts["prepare"])
            for query in (WANTED, POINT, "EXECUTE prepared"):
                outcome = run(connection, texts[query])
                assert not outcome.sqlstate, (query, outcome.message)
                assert len(outcome.rows) == len(expected[query].rows), query
                assert [row[0] for row in outcome.rows] == [r[0] for r in expected[query].rows]
            assert run(connection, texts[OTHER]).sqlstate == "55000"
    finally:
        clone.remove()
        with told.connect_dba() as dba:
            dba.execute("ALTER ROLE app RESET log_statement")
            dba.execute("ALTER ROLE app RESET log_duration")

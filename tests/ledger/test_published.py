"""Checkpoints that the keeper publishes in a directory at intervals, each with a proof that it
extends the previous one.

Right: whoever fetches each file has a chain that nobody can fork, even across restarts. Bug: the
proof is missing, or a new chain starts after a restart. (The unit tests of `published` and `logs`
test a keeper with an older log, and that nothing is published that may be undone.)"""

import contextlib

import psycopg
import pytest
from waiting import until


def settings(directory) -> dict[str, str]:
    return {
        "CONFIDE_KEEPER_LEDGER_PUBLISH_DIR": str(directory),
        "CONFIDE_KEEPER_LEDGER_PUBLISH_SECONDS": "0",
    }


@pytest.fixture
def published(stack):
    """The directory; the stack's keeper writes into it during the test."""
    directory = stack.data.parent / "keeper" / "published"
    stack.kill_keeper()
    stack.start_keeper(**settings(directory))
    yield directory
    stack.kill_keeper()
    stack.start_keeper()


def test_published(stack, published, app, auditor, schema, tmp_path):
    app.execute("CREATE TABLE deed (id int PRIMARY KEY, v enc_int4) WITH (confide.ledger = on)")
    oid, database = app.execute(
        "SELECT 'deed'::regclass::oid, oid FROM pg_database WHERE datname = current_database()"
    ).fetchone()
    file = published / f"{database}-{oid}.checkpoint"

    def size() -> int:
        return int(file.read_text().splitlines()[1]) if file.exists() else 0

    def verify(*arguments) -> tuple[int, str]:
        origin = file.read_text().splitlines()[0]
        command = ("verify", "checkpoint", file, "--key", auditor.key, "--origin", origin)
        done = auditor.run(*command, *arguments)
        return done.returncode, done.stdout + done.stderr

    app.execute("INSERT INTO deed VALUES (1, 10), (2, 20)")
    until(lambda: size() >= 2, "the first checkpoint")
    first = tmp_path / "first"
    first.write_text(file.read_text())
    assert verify()[0] == 0

    before = size()
    with app.transaction():
        app.execute("UPDATE deed SET v = v + 1")
    until(lambda: size() > before, "the next checkpoint")
    code, said = verify("--digest", first)
    assert (code, "goes on from the older checkpoint" in said) == (0, True), said

    # What is published is what the database's own checkpoint says, or less.
    now = app.execute("SELECT confide.ledger_checkpoint('deed')").fetchone()[0]
    assert int(now.splitlines()[1]) >= size()

    # A restarted keeper goes on from what is there.
    second = tmp_path / "second"
    second.write_text(file.read_text())
    stack.kill_keeper()
    stack.start_keeper(**settings(published))
    before = size()
    until(lambda: written(stack, schema), "the session works again")
    until(lambda: size() > before, "a checkpoint of the next run")
    code, said = verify("--digest", second)
    assert (code, "goes on from the older checkpoint" in said) == (0, True), said


def written(stack, schema) -> bool:
    with contextlib.suppress(psycopg.Error), stack.connect_app() as app:
        app.execute(f'INSERT INTO "{schema}".deed SELECT max(id) + 1, 7 FROM "{schema}".deed')
        return True
    return False

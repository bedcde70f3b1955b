"""The last transaction on a ledger table, after the keeper has stopped: no entry of the log says
that it has ended. Right: its versions count as written. Bug: who stops the keeper can take them
away unnoticed."""

import psycopg
import pytest
from copies import Copy, backup
from waiting import until


def remove(dba, table: str, condition: str) -> None:
    """Takes a row away as a superuser can: for a while the table is none with a log."""
    type_of = (
        "UPDATE pg_attribute SET atttypid = '{}'::regtype, attgenerated = '{}'"
        f" WHERE attrelid = '{table}'::regclass AND attname = 'sn'"
    )
    dba.execute(type_of.format("int8", ""))
    dba.execute(f"DELETE FROM {table} WHERE {condition}")
    dba.execute(type_of.format("ledger_sn", "s"))


def write(app, number: int) -> int:
    """A transaction, and one before it that is rolled back. The number of the version."""
    with pytest.raises(psycopg.errors.DivisionByZero), app.transaction():
        app.execute("INSERT INTO place.deed VALUES (-1, 'never')")
        app.execute("SELECT 1 / 0")
    sql = "INSERT INTO place.deed VALUES (%s, 'last') RETURNING sn"
    return app.execute(sql, (number,)).fetchone()[0]


@pytest.mark.parametrize("checkpoint", ["before", "after", "both", "none"])
@pytest.mark.parametrize("killed", ["keeper", "both"])
def test_after_a_stop(stack, deed, auditor, checkpoint, killed):
    """Whether the commit is in the WAL that the keeper reads, or was known at its checkpoint; and
    after a second stop, when nothing is read again."""
    with stack.connect_dba() as dba:
        if checkpoint in ("before", "both"):
            dba.execute("SELECT confide.checkpoint()")
        number = write(deed, 3)
        # The keeper has found the end.
        assert auditor.findings("place.deed") == []
        if checkpoint in ("after", "both"):
            dba.execute("SELECT confide.checkpoint()")
    for _ in range(2):
        stack.kill_keeper()
        if killed == "both":
            stack.kill_postgres()
        stack.up()
        with stack.connect_dba() as dba:
            dba.execute("SELECT confide.checkpoint()")
    with stack.connect_dba() as dba:
        remove(dba, "place.deed", "id = 3")
    with stack.connect_app() as app:
        auditor.app = app
        assert auditor.findings("place.deed") == [(number, "removed")]


def test_rolled_back_by_its_commit(stack, deed, auditor):
    """Entries of a transaction whose commit failed after they were made: its versions are not
    missed. Bug: the end of any transaction counts as a commit."""
    with stack.connect_app() as other:
        for app, number in [(deed, 3), (other, 4)]:
            app.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
            app.execute("SELECT count(*) FROM place.deed")
            app.execute("INSERT INTO place.deed VALUES (%s, 'one of two')", (number,))
        deed.execute("COMMIT")
        with pytest.raises(psycopg.errors.SerializationFailure):
            other.execute("COMMIT")
    stack.kill_keeper()
    stack.up()
    with stack.connect_app() as app:
        auditor.app = app
        assert auditor.findings("place.deed") == []
        assert app.execute("SELECT id FROM place.deed").fetchall() == [(1,), (2,), (3,)]


def test_at_a_standby(stack, deed, auditor, tmp_path):
    """Promoted, it knows the last transaction, which the primary's log says nothing of."""
    backup(stack, tmp_path / "backup", "--write-recovery-conf")
    copy = Copy(stack, "ends", tmp_path / "backup")
    try:
        copy.accept()
        copy.up()
        number = write(deed, 3)
        query = "SELECT pg_last_wal_replay_lsn() >= %s"
        with stack.connect_dba() as one, copy.connect_dba() as other:
            end = one.execute("SELECT pg_current_wal_lsn()").fetchone()[0]
            until(lambda: other.execute(query, (end,)).fetchone()[0], "the standby catches up")
            other.execute("SELECT pg_promote()")
            primary = "SELECT NOT pg_is_in_recovery()"
            until(lambda: other.execute(primary).fetchone()[0], "the standby is promoted")
            remove(other, "place.deed", "id = 3")
        key = auditor.run("pubkey", "--signing", copy.keeper_home / "keeper.key")
        auditor.key = key.stdout.strip()
        with copy.connect_app() as other:
            auditor.app = other
            assert auditor.findings("place.deed") == [(number, "removed")]
    finally:
        copy.down("--remove")

"""Ledger tables on a standby and after a restore to a point in time. Right: the log is as it was at
that point, reads there are verified, and the copy continues it alone. Bug: a log with a gap,
entries of transactions that the copy does not have, or a standby that writes."""

import shutil
import signal
import subprocess

import psycopg
import pytest
from copies import Copy, backup, owned
from stack import PG_BIN
from waiting import until

QUERY = "SELECT id, v::text FROM place.deed ORDER BY id"


def checkpoint(connection) -> list[str]:
    found = connection.execute("SELECT confide.ledger_checkpoint('place.deed')")
    return found.fetchone()[0].splitlines()[:3]  # name, size, root


def has_caught_up(stack, copy) -> bool:
    with stack.connect_dba() as one, copy.connect_dba() as other:
        end = one.execute("SELECT pg_current_wal_lsn()").fetchone()[0]
        query = "SELECT pg_last_wal_replay_lsn() >= %s"
        return other.execute(query, (end,)).fetchone()[0]


def test_standby(stack, deed, auditor, tmp_path):
    """What the primary writes the standby shows and verifies, with the primary's log; promoted, it
    goes on from it."""
    backup(stack, tmp_path / "backup", "--write-recovery-conf")
    copy = Copy(stack, "ledger", tmp_path / "backup")
    try:
        copy.accept()
        copy.up()
        deed.execute("UPDATE place.deed SET v = 'c' WHERE id = 2")
        with pytest.raises(psycopg.errors.DivisionByZero), deed.transaction():
            deed.execute("UPDATE place.deed SET v = 'never'")
            deed.execute("SELECT 1 / 0")
        until(lambda: has_caught_up(stack, copy), "the standby catches up")
        # It signs with a key of its own.
        auditor.key = auditor.run(
            "pubkey", "--signing", copy.keeper_home / "keeper.key"
        ).stdout.strip()
        with copy.connect_app() as other:
            auditor.app = other
            assert other.execute(QUERY).fetchall() == [(1, "a"), (2, "c")]
            assert checkpoint(other) == checkpoint(deed)
            assert auditor.findings("place.deed") == []
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                other.execute("DELETE FROM place.deed")
        with copy.connect_dba() as other:
            other.execute("SELECT pg_promote()")
        with copy.connect_app() as other:
            auditor.app = other
            until(lambda: written(other), "the promoted standby writes")
            assert other.execute(QUERY).fetchall() == [(1, "a"), (2, "c"), (3, "new")]
            assert auditor.findings("place.deed") == []
    finally:
        copy.down("--remove")


def written(connection) -> bool:
    try:
        connection.execute("INSERT INTO place.deed VALUES (3, 'new')")
    except psycopg.errors.ReadOnlySqlTransaction:
        return False
    return True


@pytest.fixture
def archive(stack, open_path):
    """Takes the WAL along, as an archive would; a call waits until all of it is there."""
    directory = open_path / "archive"
    directory.mkdir()
    command = [PG_BIN / "pg_receivewal", "-D", directory, "-d", stack.dba_url, "--synchronous"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def complete():
        with stack.connect_dba() as dba:
            name = dba.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone()[0]
        until(lambda: (directory / name).exists(), f"{name} is archived")
        owned("postgres", directory)

    yield complete
    process.send_signal(signal.SIGINT)
    process.wait()


def test_point_in_time(stack, deed, archive, auditor, open_path):
    """Restored to before a mistake: the log of that point, on which another past is built. A
    checkpoint from after the point tells the two apart."""
    backup(stack, open_path / "backup")
    deed.execute("UPDATE place.deed SET v = 'kept' WHERE id = 1")
    then = checkpoint(deed)
    with stack.connect_dba() as dba:
        dba.execute("SELECT pg_create_restore_point('then')")
    deed.execute("DELETE FROM place.deed")
    digest = open_path / "digest"
    later = deed.execute("SELECT confide.ledger_checkpoint('place.deed')").fetchone()[0]
    digest.write_text(later)
    archive()
    settings = f"""
restore_command = 'cp {open_path}/archive/%f %p'
recovery_target_name = 'then'
recovery_target_action = 'promote'
"""
    copy = Copy(stack, "ledger", open_path / "backup", settings)
    try:
        (copy.data_home / "recovery.signal").touch()
        owned("postgres", copy.data_home / "recovery.signal")
        # The same keeper, with its key, on older data.
        shutil.copy(stack.data.parent / "keeper" / "keeper.key", copy.keeper_home)
        owned("confide-keeper", copy.keeper_home)
        copy.accept()
        copy.up()
        with copy.connect_app() as other:
            auditor.app = other
            assert other.execute(QUERY).fetchall() == [(1, "kept"), (2, "b")]
            assert checkpoint(other) == then
            assert auditor.findings("place.deed") == []
            until(lambda: written(other), "the restored cluster writes")
            other.execute("UPDATE place.deed SET v = 'otherwise'")
            assert auditor.findings("place.deed") == []
            note = auditor.note("place.deed", "n", int(later.splitlines()[1]))
            code, said = auditor.verify(note, "--nonce", "n", "--digest", digest)
            assert (code, "its past was changed" in said) == (1, True), said
    finally:
        copy.down("--remove")

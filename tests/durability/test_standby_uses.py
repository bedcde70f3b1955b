"""What is used of restore tickets and budgets at the primary is used at a standby, too, after its
promotion, and in a cluster that is restored.

Mechanism: the keeper gives a sealed redo record of each use, which goes through the WAL to the
other keeper; what was used before the base backup is in the copy of the keeper's files. Right: such
a ticket is refused with 42501, such a budget with 53400. Bug: whoever has the standby promoted, or
a backup restored, uses a ticket or a budget once more.
"""

import shutil

import pytest
from copies import Copy, backup, owned, place, run_as
from principals import Proxy, keys, three  # noqa: F401
from results import run
from waiting import until

SETTINGS = {"CONFIDE_KEEPER_REQUIRE_GRANTS": "true", "CONFIDE_KEEPER_ADMINISTRATORS": "boss"}
ROWS = 20


def ticket(stack) -> str:
    """By an operator: whoever has the root key is the same for all keepers of the store."""
    state = place(stack.run)
    command = [state / "bin" / "confide", "restore-ticket", "--database", "app"]
    command += ["--root-key", state / "keeper" / "root.key"]
    return run_as("confide-keeper", *command, "--source", "file:").strip()


def use(stack, text: str) -> str | None:
    """Compares two values without a client, as a restore does that builds an index: the SQLSTATE
    of the refusal."""
    with stack.connect_dba() as dba:
        dba.execute(f"SET confide.restore_ticket = '{text}'")
        return run(dba, "SELECT a.id FROM uses a JOIN uses b ON a.early < b.early LIMIT 1").sqlstate


def shown(proxy, column: str, most: int = 1) -> str | None:
    """Shows one value of the column, so many times: the last answer."""
    with proxy.connect("bob") as bob:
        answers = [run(bob, f"SELECT {column} FROM uses WHERE id = 1") for _ in range(most)]
    assert all(a.sqlstate or a.rows == [("1",)] for a in answers), answers
    return answers[-1].sqlstate


def caught_up(one, other) -> None:
    with one.connect_dba() as dba, other.connect_dba() as there:
        end = dba.execute("SELECT pg_current_wal_flush_lsn()").fetchone()[0]
        reached = "SELECT pg_last_wal_replay_lsn() >= %s"
        until(lambda: there.execute(reached, (end,)).fetchone()[0], "the standby has replayed it")


@pytest.fixture(scope="module")
def used(three):  # noqa: F811
    """Columns with budgets of bob's; `early` is used up, and a ticket is used."""
    with three.stack.connect_app() as app:
        app.execute("CREATE TABLE uses (id int, early enc_int4, late enc_int4, rest enc_int4)")
        app.execute(f"INSERT INTO uses SELECT g, g, g, g FROM generate_series(1, {ROWS}) g")
    for column in "early", "late", "rest":
        name = f"public.uses.{column}"
        assert three.psql("boss", f"GRANT OWNER {name} TO ann") == ""
        assert three.psql("ann", f"GRANT VIEWER ON {name} TO bob") == ""
        assert three.psql("ann", f"SELECT confide.budget('{name}', 'shown=32')") == ""
    assert shown(three, "early", 33) == "53400"
    text = ticket(three.stack)
    assert use(three.stack, text) is None
    return text


class Restored:
    """A cluster from a backup, with a keeper and a proxy of its own."""

    def __init__(self, origin, name: str, directory, settings: str = "", recovery: bool = False):
        self.copy = Copy(origin, name, directory, settings)
        self.copy.environment.update(SETTINGS)
        if recovery:
            signal = self.copy.data_home / "recovery.signal"
            signal.touch()
            owned("postgres", signal)
        self.copy.accept()
        self.copy.up()
        self.proxy = Proxy(self.copy, keys(self.copy))

    def end(self) -> None:
        self.proxy.process.terminate()
        self.proxy.process.wait()
        self.copy.down("--remove")


@pytest.fixture
def standby(three, used, tmp_path_factory):  # noqa: F811
    directory = tmp_path_factory.mktemp("backup") / "standby"
    backup(three.stack, directory, "--write-recovery-conf")
    made = Restored(three.stack, "uses", directory)
    try:
        yield made
    finally:
        made.end()


def test_standby(three, used, standby):  # noqa: F811
    later, unused = ticket(three.stack), ticket(three.stack)
    # A standby takes in nothing, and does not use a ticket up either.
    assert use(standby.copy, unused) == "25006"
    assert use(three.stack, later) is None
    assert shown(three, "late", 33) == "53400"
    caught_up(three.stack, standby.copy)
    # What was used before the base backup, and since.
    assert [shown(standby.proxy, c) for c in ("early", "late", "rest")] == ["53400", "53400", None]
    with standby.copy.connect_dba() as dba:
        dba.execute("SELECT pg_promote()")
    with standby.copy.connect_dba() as dba:
        recovers = "SELECT pg_is_in_recovery()"
        until(lambda: dba.execute(recovers).fetchone() == (False,), "it is promoted")
        dba.execute("SELECT confide.checkpoint()")
    for _ in "as promoted", "started anew":
        assert [use(standby.copy, text) for text in (used, later)] == ["42501", "42501"]
        assert [shown(standby.proxy, c) for c in ("early", "late")] == ["53400", "53400"]
        standby.copy.kill_keeper()
        standby.copy.start_keeper(**SETTINGS)
    assert use(standby.copy, unused) is None
    assert shown(standby.proxy, "rest") is None


def test_point_in_time(three, used, open_path):  # noqa: F811
    """Uses before the point are used, and those after it are not known."""
    before, after = ticket(three.stack), ticket(three.stack)
    backup(three.stack, open_path / "backup")
    assert use(three.stack, before) is None
    assert shown(three, "rest", 33) == "53400"
    with three.stack.connect_dba() as dba:
        dba.execute("SELECT pg_create_restore_point('between')")
        wal = dba.execute("SELECT pg_walfile_name(pg_current_wal_lsn())").fetchone()[0]
    assert use(three.stack, after) is None
    with three.stack.connect_dba() as dba:
        dba.execute("SELECT pg_switch_wal()")
    assert (three.stack.data / "pg_wal" / wal).exists()
    settings = f"""
restore_command = 'cp {open_path}/wal/%f %p'
recovery_target_name = 'between'
recovery_target_action = 'promote'
"""
    shutil.copytree(three.stack.data / "pg_wal", open_path / "wal")
    owned("postgres", open_path / "wal")
    made = Restored(three.stack, "between", open_path / "backup", settings, recovery=True)
    try:
        assert [use(made.copy, text) for text in (used, before, after)] == ["42501", "42501", None]
        assert [shown(made.proxy, c) for c in ("early", "rest")] == ["53400", "53400"]
    finally:
        made.end()

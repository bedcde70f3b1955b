"""What owners and definitions say at the primary holds at a standby, too, and after it is promoted.

Mechanism: the keeper gives a sealed redo record of each command and of each definition's grant,
which goes through the WAL to the standby's keeper. Right: the standby shows a column to those to
whom the primary does. Bug: it goes by the owners, viewers and definitions of the base backup, so
who was revoked sees the column.
"""

import pytest
from copies import Copy, backup
from principals import Proxy, keys, three  # noqa: F401
from results import run
from waiting import until

SETTINGS = {"CONFIDE_KEEPER_REQUIRE_GRANTS": "true", "CONFIDE_KEEPER_ADMINISTRATORS": "boss"}
PAY = "SELECT pay FROM emp"


@pytest.fixture(scope="module")
def standby(three, tmp_path_factory):  # noqa: F811
    with three.stack.connect_app() as app:
        app.execute("CREATE TABLE emp (id int, name enc_text, pay enc_int4)")
        app.execute("INSERT INTO emp VALUES (1, 'Kimberley', 5200)")
    directory = tmp_path_factory.mktemp("backup") / "standby"
    backup(three.stack, directory, "--write-recovery-conf")
    copy = Copy(three.stack, "policies", directory)
    copy.environment.update(SETTINGS)
    copy.accept()
    copy.up()
    proxy = Proxy(copy, keys(copy))
    try:
        yield proxy
    finally:
        proxy.process.terminate()
        proxy.process.wait()
        copy.down("--remove")


def caught_up(one, other) -> None:
    with one.stack.connect_dba() as dba, other.stack.connect_dba() as there:
        end = dba.execute("SELECT pg_current_wal_flush_lsn()").fetchone()[0]
        reached = "SELECT pg_last_wal_replay_lsn() >= %s"
        until(lambda: there.execute(reached, (end,)).fetchone()[0], "the standby has replayed it")


def say(proxy, who: str, command: str) -> None:
    with proxy.connect(who) as session:
        answer = run(session, command)
        assert answer.sqlstate is None, (command, answer)


def pay(proxy, who: str) -> str:
    with proxy.connect(who) as session:
        return run(session, PAY).rows[0][0]


SAID = [
    ("boss", "GRANT OWNER public.emp.pay TO ann", {"ann": "5200", "bob": "0"}),
    ("ann", "GRANT VIEWER ON public.emp.pay TO bob", {"bob": "5200", "eve": "0"}),
    ("ann", "REVOKE VIEWER ON public.emp.pay FROM bob", {"ann": "5200", "bob": "0"}),
    ("boss", "SELECT confide.group_add('staff', 'eve')", {"eve": "0"}),
    ("ann", "GRANT VIEWER ON public.emp.pay TO GROUP staff", {"eve": "5200", "bob": "0"}),
    ("ann", "DENY VIEWER ON public.emp.pay TO eve", {"eve": "0"}),
    ("ann", "GRANT VIEWER ON public.emp.pay TO eve", {"eve": "5200"}),
    ("boss", "SELECT confide.group_remove('staff', 'eve')", {"eve": "5200"}),
    ("ann", "REVOKE VIEWER ON public.emp.pay FROM eve", {"eve": "0"}),
    ("ann", "SELECT confide.mask('public.emp.pay', 'constant(7)')", {"eve": "7", "ann": "5200"}),
]


def test_owners_and_viewers(three, standby):  # noqa: F811
    for who, command, seen in SAID:
        say(three, who, command)
        caught_up(three, standby)
        for name, value in seen.items():
            assert (pay(three, name), pay(standby, name)) == (value, value), (command, name)


def test_definitions(three, standby):  # noqa: F811
    """A view that was made after the base backup."""
    with three.stack.connect_app() as app:
        app.execute("CREATE VIEW twice AS SELECT name || name AS n FROM emp WHERE name > 'A'")
    caught_up(three, standby)
    with standby.stack.connect_app() as app:
        assert app.execute("SELECT n FROM twice").fetchall() == [("KimberleyKimberley",)]


def test_not_at_the_standby(three, standby):  # noqa: F811
    with standby.connect("ann") as ann:
        answer = run(ann, "GRANT VIEWER ON public.emp.pay TO bob")
        assert answer.sqlstate == "25006"
    assert pay(standby, "bob") == "7"


def test_restarted_and_promoted(three, standby):  # noqa: F811
    say(three, "ann", "GRANT VIEWER ON public.emp.pay TO bob")
    caught_up(three, standby)
    assert pay(standby, "bob") == "5200"
    standby.stack.kill_keeper()
    standby.stack.start_keeper(**SETTINGS)
    assert [pay(standby, name) for name in ("ann", "bob", "eve")] == ["5200", "5200", "7"]
    with standby.stack.connect_dba() as dba:
        dba.execute("SELECT pg_promote()")
    say(standby, "ann", "REVOKE VIEWER ON public.emp.pay FROM bob")
    assert (pay(three, "bob"), pay(standby, "bob")) == ("5200", "7")

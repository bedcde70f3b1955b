"""Execution mode: superusers, and roles that can become one, cannot log in; statistics can be read,
and the switch is logged.

Mechanism: `confide mode` with the role for templates, and attempts to log in. Right: each login of
a superuser is refused in execution mode, their open sessions end, the application continues, and
the chained log says who switched. Bug: an administrator gets in with another role, an open session,
or a setting of his own.
"""

import json

import psycopg
import pytest
from stack import PG_BIN
from waiting import until

ROLES = {
    "member": "IN ROLE postgres",
    "member_of_member": "IN ROLE member",
    "writer": "IN ROLE pg_write_server_files",
    "runner": "IN ROLE pg_execute_server_program",
    "maker": "CREATEROLE",
}


class Modes:
    def __init__(self, stack, fixes):
        self.stack, self.fixes = stack, fixes

    def command(self, *arguments, url=None):
        where = ["--dbname", url or self.fixes.url, "--bindir", PG_BIN, "--log", self.fixes.log]
        return self.fixes.run("mode", *arguments, *where)

    def switch(self, to):
        done = self.command(to)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"mode {to}\n")
        return done.stdout

    def url(self, role):
        parts = psycopg.conninfo.conninfo_to_dict(self.fixes.url)
        return psycopg.conninfo.make_conninfo(**{**parts, "user": role, "password": "p"})


@pytest.fixture(scope="module")
def modes(stack, role):
    modes = Modes(stack, role)
    with stack.connect_dba() as dba:
        for name, what in ROLES.items():
            dba.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'p' {what}")
        dba.execute("CREATE ROLE plain LOGIN PASSWORD 'p'")
    yield modes
    with stack.connect_dba() as dba:
        dba.execute(f"DROP ROLE plain, {', '.join(ROLES)}")
        dba.execute("ALTER SYSTEM RESET confide.mode")
        dba.execute("SELECT pg_reload_conf()")


@pytest.fixture
def execution(modes):
    modes.switch("execution")
    yield modes
    modes.switch("maintenance")


def refused(url, **options):
    with pytest.raises(psycopg.OperationalError) as error:
        psycopg.connect(url, **options).close()
    assert "in execution mode" in str(error.value)


def test_no_superuser_logs_in(execution):
    refused(execution.stack.dba_url)
    refused(execution.stack.dba_url, options="-c role=app")
    refused(execution.stack.dba_url, replication="database")
    for role in ROLES:
        refused(execution.url(role))
    with psycopg.connect(execution.url("plain")) as plain:
        for statement in ("SET confide.mode = maintenance", "ALTER SYSTEM RESET confide.mode"):
            with pytest.raises(psycopg.Error):
                plain.execute(statement)
            plain.rollback()
    # The setting of a session is none of the server's.
    for options in ("-c confide.mode=maintenance", "-c session_preload_libraries="):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(execution.stack.dba_url, options=options)


def test_superusers_log_in_again(modes):
    modes.switch("execution")
    refused(modes.stack.dba_url)
    modes.switch("maintenance")
    for url in (modes.stack.dba_url, *(modes.url(role) for role in ROLES)):
        psycopg.connect(url).close()


def test_open_sessions_end(modes):
    """Idle ones, and one in a statement that does not end by itself."""
    held = [modes.stack.connect_dba(), psycopg.connect(modes.url("member"), autocommit=True)]
    busy = modes.stack.connect_dba()
    busy.pgconn.send_query(b"DO 'BEGIN LOOP PERFORM pg_sleep(0.01); END LOOP; END'")
    try:
        assert modes.switch("execution").endswith("sessions of superusers 0\n")
        for session in held:
            with pytest.raises(psycopg.OperationalError):
                session.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            busy.execute("SELECT 1")
    finally:
        modes.switch("maintenance")


def test_next_statement_is_refused(modes):
    """A session that nobody has ended does nothing any more: not by statements, nor parsed ones."""
    for parameters in (None, [1]):
        held = modes.stack.connect_dba()
        with psycopg.connect(modes.fixes.url, autocommit=True) as agent:
            agent.execute("ALTER SYSTEM SET confide.mode = 'execution'")
            agent.execute("SELECT pg_reload_conf()")
        try:
            until(lambda: shown(modes) == "execution", "the mode is execution")
            with pytest.raises(psycopg.OperationalError):
                held.execute("SELECT %s::int" if parameters else "CREATE TABLE late ()", parameters)
        finally:
            modes.switch("maintenance")
    with modes.stack.connect_dba() as dba:
        assert dba.execute("SELECT to_regclass('late')").fetchone() == (None,)


def shown(modes):
    with psycopg.connect(modes.fixes.url) as asking:
        return asking.execute("SHOW confide.mode").fetchone()[0]


def test_work_goes_on(execution):
    """The application, the monitoring role, and whoever asks for the mode from outside."""
    with execution.stack.connect_app() as app:
        app.execute("CREATE TABLE moded (name enc_text)")
        app.execute("INSERT INTO moded VALUES ('planted s3cret')")
        app.execute("CREATE INDEX ON moded (name)")
        app.execute("VACUUM moded")
        assert app.execute("SELECT name FROM moded").fetchall() == [("planted s3cret",)]
        app.execute("DROP TABLE moded")
    with psycopg.connect(execution.fixes.url, autocommit=True) as monitor:
        assert monitor.execute("SELECT count(*) FROM pg_stat_activity").fetchone()[0] > 0
        assert monitor.execute("SELECT count(*) FROM confide.confide_stat_keeper").fetchone()
    said = execution.command(url=execution.stack.app_url)
    assert said.stdout == "mode execution\nsessions of superusers 0\n", said.stderr


def test_mode_outlives_the_server(execution):
    execution.stack.kill_postgres()
    execution.stack.start_postgres()
    refused(execution.stack.dba_url)


def test_who_switched_is_in_the_log(modes):
    modes.switch("execution")
    modes.switch("maintenance")
    lines = [json.loads(line) for line in modes.fixes.log.read_text().splitlines()]
    last = [(line["action"]["value"], line["outcome"]) for line in lines[-4:]]
    outcomes = ("begun", "done")
    assert last == [(mode, what) for mode in ("execution", "maintenance") for what in outcomes]
    assert all(line["user"] and line["time"] for line in lines)
    checked = modes.fixes.confide("verify", modes.fixes.log)
    assert checked.returncode == 0, checked.stderr


def test_others_do_not_switch(modes):
    for url in (modes.url("plain"), modes.stack.app_url):
        done = modes.command("maintenance", url=url)
        assert done.returncode == 1
        assert "permission denied" in done.stderr

"""To another version of PostgreSQL: pg_upgrade is refused before anything is changed, and a dump of
an older server can be restored. (CONFIDE_OLDER_PG names the older one's pg_config: `make
compat-versions`.)"""

import os
import subprocess
from pathlib import Path

import pytest
from copies import another_cluster
from dumps import PSQL, fill, finish, holds, same, tool
from stack import PG_BIN, as_user

OLDER = os.environ.get("CONFIDE_OLDER_PG")


def upgrade(old, new, cwd):
    """pg_upgrade's text and those of the servers that it started."""
    command = [PG_BIN / "pg_upgrade", "--check", "-b", PG_BIN, "-B", PG_BIN, "-d", old, "-D", new]
    done = subprocess.run(
        as_user("postgres", command), cwd=cwd, capture_output=True, text=True, timeout=300
    )
    logs = "".join(log.read_text() for log in new.rglob("pg_upgrade_server.log"))
    return done.returncode, done.stdout + done.stderr, logs


def initdb(data):
    command = [PG_BIN / "initdb", "-D", data, "-A", "trust", "-N", "-U", "postgres"]
    subprocess.run(as_user("postgres", command), cwd="/", check=True, capture_output=True)
    with (data / "postgresql.conf").open("a") as conf:
        conf.write("shared_preload_libraries = 'confide'\n")


def test_pg_upgrade_is_refused(stack, app, schema, open_path):
    """The keeper holds values of which only the WAL knows. Bug: the new cluster lacks them and has,
    with links to the old one's files, no way back."""
    app.execute("CREATE TABLE t (id int, v enc_text)")
    app.execute("INSERT INTO t VALUES (1, 'one')")
    app.close()
    open_path.chmod(0o777)
    initdb(open_path / "new")
    stop = [PG_BIN / "pg_ctl", "stop", "-s", "-w", "-m", "fast", "-D", stack.data]
    subprocess.run(as_user("postgres", stop), cwd="/", check=True)
    try:
        status, said, logs = upgrade(stack.data, open_path / "new", open_path)
    finally:
        stack.up()
    assert status != 0, said
    assert "pg_upgrade does not upgrade clusters with protected values" in logs, said + logs
    with stack.connect_app(options=f"-c search_path={schema}") as connection:
        assert connection.execute("SELECT v FROM t").fetchone() == ("one",)


@pytest.fixture
def older(stack):
    """A stack with the older server, whose keeper has the same root key."""
    if OLDER is None:
        pytest.skip("CONFIDE_OLDER_PG is not set")
    with another_cluster(stack, "older", same_key=True, pg_config=OLDER) as made:
        yield made


def test_dump_of_an_older_server(older, stack, schema):
    """By a superuser of the older one. Rows, defaults, constraints, indexes and views are what they
    were."""
    with older.connect_app() as people:
        people.execute(f'CREATE SCHEMA "{schema}"')
        people.execute(f'SET search_path = "{schema}"')
        fill(people)
        with stack.connect_dba() as dba:
            dba.execute(f'DROP SCHEMA "{schema}"')
        command = [Path(OLDER).parent / "pg_dump", "-d", older.dba_url, "-n", schema]
        dump = subprocess.run(
            command, env=older.environment, check=True, capture_output=True
        ).stdout
        tool(*PSQL, stack.dba_url, stdin=dump, env=stack.restoring("app"))
        with stack.connect_app(options=f"-c search_path={schema}") as connection:
            same(people, connection)
            finish(connection)
            holds(connection)

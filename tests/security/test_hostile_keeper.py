"""A keeper that lies (extension/test/hostile_keeper.py), with a private PostgreSQL: each statement
ends with an ordinary error or result in time, and no process of PostgreSQL dies. (Set CONFIDE_SEED
and CONFIDE_HOSTILE_SECONDS for longer runs.)"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from stack import PG_BIN, ROOT, as_user, free_port

SECONDS = os.environ.get("CONFIDE_HOSTILE_SECONDS", "8")
SEED = os.environ.get("CONFIDE_SEED", "1")


@pytest.fixture
def server():
    """A cluster that was never with a keeper; PostgreSQL's user must reach it."""
    home = Path(tempfile.mkdtemp(prefix="confide-hostile-"))
    if os.geteuid() == 0:
        shutil.chown(home, "postgres")
    home.chmod(0o755)

    def run(*command):
        done = subprocess.run(
            as_user("postgres", [str(word) for word in command]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
        assert done.returncode == 0, command

    data, port = home / "data", free_port()
    run(PG_BIN / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
    with (data / "postgresql.conf").open("a") as conf:
        conf.write(
            f"shared_preload_libraries = 'confide'\nconfide.keeper_socket = '{home}/keeper'\n"
            f"unix_socket_directories = '{home}'\nlisten_addresses = ''\nport = {port}\n"
            "fsync = off\nconfide.connect_timeout = '500ms'\n"
        )
    run(PG_BIN / "pg_ctl", "start", "-s", "-w", "-D", data, "-l", home / "log")
    environment = {
        **os.environ,
        "PATH": f"{PG_BIN}:{os.environ['PATH']}",
        "PGHOST": str(home),
        "PGPORT": str(port),
        "PGUSER": "postgres",
        "PGDATABASE": "postgres",
    }
    subprocess.run(
        ["psql", "-Xqc", "CREATE EXTENSION confide"], env=environment, check=True, timeout=300
    )
    yield home, environment
    run(PG_BIN / "pg_ctl", "stop", "-s", "-m", "immediate", "-D", data)
    shutil.rmtree(home)


def test_hostile_keeper(server):
    home, environment = server
    script = ROOT / "extension" / "test" / "hostile_keeper.py"
    done = subprocess.run(
        [sys.executable, script, home / "keeper", SECONDS, SEED],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr

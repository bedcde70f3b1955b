"""PostgreSQL and a keeper that share a device and a stream of bytes, and nothing else, as two
guests of one host do (docs/attestation.md). A file on tmpfs stands for the device, relays over TCP
for the network: no descriptor and no credentials of a user pass them.

Right: sessions, parallel workers and a keeper that is started anew work as in one guest. Bug: a
statement that waits for ever, since a byte was not relayed; a channel in the memory of another; a
session that a server without the device begins.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest
from stack import POSTGRES, ROOT, RUN, Stack, as_user, free_port
from waiting import until

CHANNELS, CHANNEL_BYTES = 24, 528_384

# What systemd-socket-proxyd does in the units of packaging/guests, at both ends.
RELAY = """
import socket, sys, threading

def copy(source, to):
    try:
        while data := source.recv(4096):
            to.sendall(data)
    except OSError:
        pass
    for end, how in (source, socket.SHUT_RD), (to, socket.SHUT_WR):
        try:
            end.shutdown(how)
        except OSError:
            pass

def relay(near, connect):
    try:
        far = connect()
    except OSError:
        near.close()
        return
    threading.Thread(target=copy, args=(near, far), daemon=True).start()
    copy(far, near)

def serve(listener, connect):
    while True:
        near, _ = listener.accept()
        threading.Thread(target=relay, args=(near, connect), daemon=True).start()

def to_keeper():
    far = socket.socket(socket.AF_UNIX)
    far.connect(keeper)
    return far

path, port, keeper = sys.argv[1], int(sys.argv[2]), sys.argv[3]
near = socket.socket(socket.AF_UNIX)
near.bind(path)
near.listen(128)
network = socket.create_server(("127.0.0.1", port))
print("ready", flush=True)
threading.Thread(target=serve, args=(network, to_keeper), daemon=True).start()
serve(near, lambda: socket.create_connection(("127.0.0.1", port)))
"""


@contextlib.contextmanager
def relayed(path: Path, run: Path):
    named = f'. "{ROOT}/scripts/lib.sh" && printf %s "$KEEPER_SOCKET"'
    keeper = subprocess.run(
        ["bash", "-c", named],
        env={**os.environ, "CONFIDE_RUN": str(run)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    command = ["/usr/bin/python3", "-c", RELAY, path, str(free_port()), keeper]
    process = subprocess.Popen(
        as_user("postgres", command), stdout=subprocess.PIPE, text=True, cwd="/"
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def apart():
    """Before the first start of PostgreSQL, which waits for its keeper, the relay must be there."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="confide-") as place:
        os.chmod(place, 0o777)
        memory, path = Path(place, "memory"), Path(place, "relay")
        memory.touch()
        os.truncate(memory, CHANNELS * CHANNEL_BYTES)
        memory.chmod(0o666)
        settings = f"confide.keeper_socket = '{path}'\nconfide.keeper_memory = '{memory}'\n"
        stack = Stack(RUN.with_name(f"{RUN.name}-apart"), POSTGRES + settings)
        stack.environment["CONFIDE_KEEPER_CHANNEL_MEMORY"] = str(memory)
        with relayed(path, stack.run):
            try:
                stack.up()
                stack.memory = memory
                yield stack
            finally:
                stack.down("--remove")


def test_sessions(apart):
    """Several at once; values that are longer than the rings; a session's end frees its range."""
    for _ in range(CHANNELS):
        with apart.connect_app() as app:
            app.execute("CREATE TABLE IF NOT EXISTS t (id int, name enc_text)")
    clients = [apart.connect_app() for _ in range(6)]
    for number, client in enumerate(clients):
        client.execute("INSERT INTO t VALUES (%s, %s)", (number, f"secret {number}" * 50_000))
    for number, client in enumerate(clients):
        asked = "SELECT id FROM t WHERE name LIKE %s"
        assert client.execute(asked, [f"secret {number}%"]).fetchall() == [(number,)]
        assert len(client.execute("SELECT name FROM t").fetchall()) == len(clients)
        client.close()
    with apart.connect_dba() as dba:
        found = dba.execute("SHOW confide.keeper_memory").fetchone()
        assert found == (str(apart.memory),)


def test_parallel_workers(apart):
    with apart.connect_app() as app:
        app.execute("CREATE TABLE p (id int, pay enc_int4)")
        app.execute("INSERT INTO p SELECT g, g FROM generate_series(1, 20000) g")
        app.execute("ANALYZE p")
        for setting in (
            "parallel_setup_cost = 0",
            "parallel_tuple_cost = 0",
            "min_parallel_table_scan_size = 0",
            "max_parallel_workers_per_gather = 2",
        ):
            app.execute(f"SET {setting}")
        plan = "EXPLAIN (ANALYZE, COSTS OFF) SELECT count(*) FROM p WHERE pay > 100"
        assert "Workers Launched: 2" in str(app.execute(plan).fetchall())
        assert app.execute("SELECT count(*) FROM p WHERE pay > 100").fetchone() == (19_900,)


def test_keeper_anew(apart):
    """Both ends notice that the keeper has gone; afterwards the same client goes on."""
    with apart.connect_app() as app:
        app.execute("CREATE TABLE k (pay enc_int4)")
        app.execute("INSERT INTO k VALUES (5200)")
        os.kill(apart.keeper_pid(), signal.SIGKILL)
        until(lambda: not apart.keeper_runs(), "the keeper has gone")
        apart.start_keeper(CONFIDE_KEEPER_CHANNEL_MEMORY=str(apart.memory))

        def served():
            with contextlib.suppress(psycopg.Error):
                return app.execute("SELECT pay FROM k").fetchall() == [(5200,)]

        until(served, "the client is served")


def test_without_the_device(apart):
    """A server that does not have it gets no session, and says why."""
    with apart.connect_dba() as dba:
        try:
            for wrong, hint in ("", "channel_memory"), ("/dev/null", "may read and write"):
                dba.execute(f"ALTER SYSTEM SET confide.keeper_memory = '{wrong}'")
                dba.execute("SELECT pg_reload_conf()")

                def refused(hint=hint):
                    with apart.connect_dba() as other:
                        with pytest.raises(psycopg.Error) as error:
                            other.execute("SELECT confide.stat_keeper()")
                        told = error.value.diag
                        return told.sqlstate == "08001" and hint in told.message_hint

                until(refused, "the server has the new setting")
        finally:
            dba.execute("ALTER SYSTEM RESET confide.keeper_memory")
            dba.execute("SELECT pg_reload_conf()")

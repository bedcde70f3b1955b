"""PgBouncer between the application and the proxy, and between the proxy and the server;
connections
for replication.

Mechanism: PgBouncer's clients share its connections to the proxy, each of which has its own session
with the keeper. Between two transactions (or clients) a connection goes to another client.

Right answer: rows as on plain tables, whichever connection serves a transaction. A connection for
replication is refused with its reason. Bug: a statement fails because its session with the keeper
belongs to another connection, or a value of another client's statement is shown.

Behind the proxy a pooler gives a process of the server, which has a client's session with the
keeper,
to other clients. Right answer: without a setting the proxy refuses it. With the setting each client
has a process until it leaves, and nothing of its session is left then; where transactions are
pooled
nevertheless, a statement that comes to another client's process is refused, and so is one that
comes
past the proxy. Bug: somebody compares values in another client's name.
"""

import contextlib
import os
import socket
import subprocess
import threading
import tomllib

import psycopg
import pytest
from stack import accepts, as_user, free_port

USERLIST = '"app" "{password}"\n'
SETTINGS = """
[databases]
* = host={host} port={proxy} user=app password={password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = trust
auth_file = {users}
pool_mode = {mode}
default_pool_size = {size}
ignore_startup_parameters = extra_float_digits
server_reset_query = DISCARD ALL
logfile = {log}
pkt_buf = {buffer}
unix_socket_dir =
"""


@contextlib.contextmanager
def bouncer(stack, directory, mode, behind=None, size=2):
    """PgBouncer before the proxy, or before the server (`behind`: where it is); the application's
    URL
    at it."""
    parts = psycopg.conninfo.conninfo_to_dict(stack.app_url)
    place = behind or parts
    password = parts.get("password", "") if behind is None else server_password(stack)
    port = free_port()
    users, config = directory / "users", directory / "pgbouncer.ini"
    users.write_text(USERLIST.format(password=password))
    config.write_text(
        SETTINGS.format(
            host=place["host"],
            proxy=place["port"],
            password=password,
            port=port,
            size=size,
            # The server's reports of the schema are longer than PgBouncer expects of a setting.
            buffer=4096 if behind is None else 1 << 20,
            users=users,
            mode=mode,
            log=directory / "log",
        )
    )
    directory.chmod(0o777)
    url = psycopg.conninfo.make_conninfo(
        host="127.0.0.1", port=port, dbname=parts["dbname"], user="app"
    )
    process = subprocess.Popen(as_user("postgres", ["/usr/sbin/pgbouncer", "-q", config]), cwd="/")
    try:
        while not accepts(url):
            assert process.poll() is None, (directory / "log").read_text()
        yield url
    finally:
        process.terminate()
        process.wait()


def server_password(stack):
    """What the proxy tells the server."""
    users = tomllib.loads((stack.data.parent / "proxy" / "users.toml").read_text())
    return users["app"]["server_password"]


@contextlib.contextmanager
def behind(stack, directory, mode, size=2, serves=True, **settings):
    """A proxy with PgBouncer between it and the server; the application's URLs at both."""
    server = psycopg.conninfo.conninfo_to_dict(stack.dba_url)
    with bouncer(stack, directory, mode, server, size) as past:
        port = psycopg.conninfo.conninfo_to_dict(past)["port"]
        place = f"127.0.0.1:{port}"
        with stack.another_proxy(serves=serves, upstream=place, **settings) as (_, url):
            yield url, past


def client(url, schema, **options):
    connection = psycopg.connect(url, autocommit=True, **options)
    connection.execute(f'SET search_path = "{schema}"')
    return connection


def table(stack, schema):
    with stack.connect_app() as app:
        app.execute(f'SET search_path = "{schema}"')
        app.execute("CREATE TABLE person (id int PRIMARY KEY, name enc_text)")
        app.execute("INSERT INTO person SELECT i, 'name ' || i FROM generate_series(1, 20) i")


def reads(url, schema, number, failures):
    """Without prepared statements that outlive a transaction: PgBouncer 1.18 has none."""
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            for turn in range(15):
                wanted = (number * 5 + turn) % 20 + 1
                sql = f'SELECT id, name FROM "{schema}".person WHERE name = %s'
                with connection.transaction():
                    rows = connection.execute(sql, (f"name {wanted}",), prepare=False).fetchall()
                    constant = sql.replace("= %s", "= 'name 7'")
                    again = connection.execute(constant, prepare=False).fetchall()
                assert rows == [(wanted, f"name {wanted}")], rows
                assert again == [(7, "name 7")], again
    except Exception as error:
        failures.append(error)


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_pgbouncer_in_front(stack, schema, open_path, mode):
    table(stack, schema)
    failures = []
    # In session mode a client keeps its connection: there are two.
    count = 6 if mode == "transaction" else 2
    with bouncer(stack, open_path, mode) as url:
        threads = [
            threading.Thread(target=reads, args=(url, schema, number, failures))
            for number in range(count)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_pgbouncer_passes_sessions_on(stack, schema, open_path):
    """Session pooling: DISCARD ALL lies between two clients, and the keeper is still there."""
    table(stack, schema)
    with bouncer(stack, open_path, "session") as url:
        for number in range(1, 6):
            with client(url, schema) as connection:
                sql = "SELECT id FROM person WHERE name = %s"
                prepared = connection.execute(sql, (f"name {number}",), prepare=True)
                assert prepared.fetchall() == [(number,)]
                rows = connection.execute("SELECT name FROM person WHERE id = %s", (number,))
                assert rows.fetchall() == [(f"name {number}",)]


def test_the_keeper_is_restarted(stack, schema, open_path):
    table(stack, schema)
    with bouncer(stack, open_path, "transaction") as url:
        sql = f"SELECT id FROM \"{schema}\".person WHERE name = 'name 3'"
        with psycopg.connect(url, autocommit=True) as connection:
            assert connection.execute(sql).fetchall() == [(3,)]
            stack.kill_keeper()
            stack.start_keeper()
            assert connection.execute(sql).fetchall() == [(3,)]


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_pooler_that_nobody_has_named(stack, open_path, mode):
    with behind(stack, open_path, mode, serves=False) as (url, _):
        with pytest.raises(psycopg.OperationalError, match="a pooler stands between") as raised:
            psycopg.connect(url)
        assert "upstream_pooling" in str(raised.value)


def test_pgbouncer_behind(stack, schema, open_path):
    """More clients one after another than there are processes; two at a time."""
    table(stack, schema)
    failures = []
    with behind(stack, open_path, "session", upstream_pooling="session") as (url, _):
        for _ in range(2):
            threads = [
                threading.Thread(target=reads, args=(url, schema, number, failures))
                for number in range(2)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for number in range(1, 4):
            with client(url, schema) as connection:
                sql = "SELECT id FROM person WHERE name = %s"
                for _ in range(2):
                    prepared = connection.execute(sql, (f"name {number}",), prepare=True)
                    assert prepared.fetchall() == [(number,)]
                connection.execute("DISCARD ALL")
                connection.execute(f'SET search_path = "{schema}"')
                rows = connection.execute(sql, (f"name {number}",), prepare=False)
                assert rows.fetchall() == [(number,)]
    assert failures == []


COMPARES = 'SELECT count(*) FROM "{0}".person a, "{0}".person b WHERE a.name < b.name'


def test_what_a_client_leaves(stack, schema, open_path):
    """A client vanishes without a word; the next one at its process comes past the proxy."""
    table(stack, schema)
    sql = COMPARES.format(schema)
    with behind(stack, open_path, "session", 1, upstream_pooling="session") as (url, past):
        connection = client(url, schema)
        assert connection.execute(sql).fetchone() == (190,)
        process = connection.execute("SELECT pg_backend_pid()").fetchone()
        socket.socket(fileno=os.dup(connection.fileno())).shutdown(socket.SHUT_RDWR)
        with psycopg.connect(past, autocommit=True) as other:
            assert other.execute("SELECT pg_backend_pid()").fetchone() == process
            with pytest.raises(psycopg.Error) as raised:
                other.execute(sql)
            assert raised.value.sqlstate in ("42501", "08003"), raised.value


def test_transactions_are_pooled_behind(stack, schema, open_path):
    """Two clients at one process, and one that comes to it past the proxy."""
    table(stack, schema)
    sql = COMPARES.format(schema)
    pooled = behind(stack, open_path, "transaction", 1, serves=False, upstream_pooling="session")
    with pooled as (url, past), psycopg.connect(url, autocommit=True) as alice:
        assert alice.execute(sql).fetchone() == (190,)
        with pytest.raises(psycopg.OperationalError, match="serves another client"):
            psycopg.connect(url)
        with psycopg.connect(past, autocommit=True) as bob:
            for statement in (sql, "SELECT 1", sql + " -- own1"):
                with pytest.raises(psycopg.errors.FeatureNotSupported):
                    bob.execute(statement)


def test_a_transaction_at_another_process(stack, schema, open_path):
    """Each of two clients has its own process in one transaction. PgBouncer gives the process
    that was
    given back last, Bob's, to Alice's next one, also if that begins with a statement that both have
    prepared under one name."""
    table(stack, schema)
    sql = COMPARES.format(schema)
    pooled = behind(stack, open_path, "transaction", 2, serves=False, upstream_pooling="session")
    with (
        pooled as (url, _),
        psycopg.connect(url, autocommit=True) as alice,
    ):
        alice.execute("BEGIN")
        assert alice.execute(sql).fetchone() == (190,)
        with psycopg.connect(url, autocommit=True) as bob:
            bob.execute("BEGIN")
            assert bob.execute(sql).fetchone() == (190,)
            for name, one in (("Alice", alice), ("Bob", bob)):
                one.pgconn.prepare(b"same", f"SELECT '{name}'".encode())
                shown = one.pgconn.exec_prepared(b"same", None).get_value(0, 0)
                assert shown.decode() == name
            alice.execute("COMMIT")
            bob.execute("COMMIT")
            result = alice.pgconn.exec_prepared(b"same", None)
            assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"0A000"
            for statement in (sql, "SELECT 1", "BEGIN"):
                with pytest.raises(psycopg.errors.FeatureNotSupported) as raised:
                    alice.execute(statement)
                assert "another client" in str(raised.value)
            assert bob.execute(sql).fetchone() == (190,)


@pytest.mark.parametrize("kind", ["database", "true"])
def test_replication_is_refused(stack, kind):
    with pytest.raises(psycopg.OperationalError) as raised:
        psycopg.connect(stack.app_url, replication=kind)
    message = str(raised.value)
    assert "replication connections are not supported" in message
    assert "Connect to the server itself" in message


def test_replication_off_is_none(stack):
    with psycopg.connect(stack.app_url, replication="off", autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)

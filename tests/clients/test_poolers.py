"""PgBouncer between the application and the proxy, and connections for replication.

Mechanism: PgBouncer's clients share its connections to the proxy, each of which has its own session
with the keeper. Between two transactions (or clients) a connection goes to another client.

Right answer: rows as on plain tables, whichever connection serves a transaction. A connection for
replication is refused with its reason. Bug: a statement fails because its session with the keeper
belongs to another connection, or a value of another client's statement is shown.
"""

import contextlib
import subprocess
import threading

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
default_pool_size = 2
ignore_startup_parameters = extra_float_digits
server_reset_query = DISCARD ALL
logfile = {log}
unix_socket_dir =
"""


@contextlib.contextmanager
def bouncer(stack, directory, mode):
    """PgBouncer before the proxy; the application's URL at it."""
    parts = psycopg.conninfo.conninfo_to_dict(stack.app_url)
    port = free_port()
    users, config = directory / "users", directory / "pgbouncer.ini"
    users.write_text(USERLIST.format(password=parts.get("password", "")))
    config.write_text(
        SETTINGS.format(
            host=parts["host"],
            proxy=parts["port"],
            password=parts.get("password", ""),
            port=port,
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
        process.wait(60)


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

"""Several servers, of which a client gets the first that is reached and is of the kind wanted.

Mechanism: `upstream` names several places, `target_session_attrs` the kind, which servers report
when a session begins. A place where nobody listens, and a server that says that it is a standby (it
is a few lines here), stand before the real one. Bug: a client is refused though a server would
serve it, or is served by one of another kind.
"""

import contextlib
import socket
import threading
import tomllib

import psycopg
import pytest
from stack import free_port
from waiting import cancelled_while_it_sleeps


@pytest.fixture
def real(stack):
    config = tomllib.loads((stack.data.parent / "proxy" / "proxy.toml").read_text())
    return config["upstream"]


def message(tag, body):
    return tag + (len(body) + 4).to_bytes(4) + body


def setting(name, value):
    return message(b"S", f"{name}\0{value}\0".encode())


@contextlib.contextmanager
def standby():
    """Somebody who lets everybody in and is a standby; the place, and how often it was asked."""
    asked = []
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.recv(4096)
                asked.append(1)
                said = setting("in_hot_standby", "on") + message(b"Z", b"I")
                client.sendall(message(b"R", bytes(4)) + said)
                client.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def protects(url, schema):
    """A value goes in and comes out again."""
    with psycopg.connect(url, autocommit=True) as app:
        app.execute(f'SET search_path = "{schema}"')
        app.execute("CREATE TABLE IF NOT EXISTS several (s enc_text)")
        app.execute("INSERT INTO several VALUES ('a')")
        return app.execute("SELECT s FROM several WHERE s = 'a'").fetchone() == ("a",)


def test_the_first_that_is_reached(stack, schema, real):
    with stack.another_proxy(upstream=f"127.0.0.1:{free_port()},{real}") as (_, url):
        assert protects(url, schema)
        with (
            psycopg.connect(url, autocommit=True) as app,
            cancelled_while_it_sleeps(stack, app),
            pytest.raises(psycopg.errors.QueryCanceled),
        ):
            app.execute("SELECT pg_sleep(600)")


@pytest.mark.parametrize("kind", ["primary", "read-write"])
def test_the_kind(stack, schema, real, kind):
    with standby() as (place, asked):
        proxy = stack.another_proxy(upstream=f"{place},{real}", target_session_attrs=kind)
        with proxy as (_, url):
            assert protects(url, schema)
            assert asked


def test_no_such_server(stack):
    refused = pytest.raises(psycopg.OperationalError, match="no server is standby")
    proxy = stack.another_proxy(serves=False, target_session_attrs="standby")
    with proxy as (_, url), refused:
        psycopg.connect(url)
    nobody = f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}"
    refused = pytest.raises(psycopg.OperationalError, match="cannot connect to the server")
    with stack.another_proxy(serves=False, upstream=nobody) as (_, url), refused:
        psycopg.connect(url)


def test_what_the_session_says(stack):
    """The same server is of both kinds, by its session's settings."""
    with stack.another_proxy(serves=False, target_session_attrs="read-only") as (_, url):
        with pytest.raises(psycopg.OperationalError, match="no server is read-only"):
            psycopg.connect(url)
        options = "-c default_transaction_read_only=on"
        with psycopg.connect(url, options=options, autocommit=True) as app:
            assert app.execute("SELECT 1").fetchone() == (1,)

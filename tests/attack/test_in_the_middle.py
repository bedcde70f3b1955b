"""Somebody between the application and the database: a relay that listens on the network, a proxy
of the attacker's own, and one that stands between another proxy and the keeper.

Mechanism: values leave the proxy sealed with the key of a session, whose handshake authenticates
the client's key and the keeper's. Right: the relay sees no value; the keeper has no session for
another client's key, and a proxy none with another keeper than the one that it was told of.
Bug: whoever is in the middle reads the values, or has a session that computes for him.
"""

import contextlib
import socket
import subprocess
import threading

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from stack import as_user

SECRET, PAY = "Kimberley in the middle", 73_211_904


class Relay(threading.Thread):
    """Passes bytes on between a client and a server, and keeps them."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server = server
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.heard = bytearray()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.server)
                for ends in (client, server), (server, client):
                    threading.Thread(target=self.pass_on, args=ends, daemon=True).start()

    def pass_on(self, source, to):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                self.heard += piece
                to.sendall(piece)
            to.shutdown(socket.SHUT_WR)


@pytest.fixture
def emp(app):
    app.execute("CREATE TABLE emp (id int PRIMARY KEY, name enc_text, pay enc_int4)")
    app.execute(f"INSERT INTO emp VALUES (1, '{SECRET}', {PAY})")
    return app


def test_relay(stack, emp, schema, attack):
    """Between proxy and server, without TLS: each form in which values go to and fro."""
    relay = Relay(("127.0.0.1", int(conninfo_to_dict(stack.dba_url)["port"])))
    relay.start()
    address = f"127.0.0.1:{relay.port}"
    with stack.another_proxy(upstream=address, upstream_sslmode="disable") as (_, url):
        options = f"-c search_path={schema}"
        with psycopg.connect(url, options=options, autocommit=True) as app:
            rows = app.execute("SELECT name, pay FROM emp").fetchall()
            assert rows == [(SECRET, PAY)]
            binary = app.cursor(binary=True)
            assert binary.execute("SELECT pay FROM emp WHERE id = %s", [1]).fetchone() == (PAY,)
            app.execute("INSERT INTO emp VALUES (%s, %s, %s)", [2, SECRET, PAY])
            app.execute(f"UPDATE emp SET pay = {PAY} WHERE name = '{SECRET}'")
            with app.cursor().copy("COPY emp FROM STDIN") as copy:
                copy.write_row((3, SECRET, PAY))
            with app.cursor().copy("COPY emp TO STDOUT") as copy:
                assert SECRET in b"".join(map(bytes, copy)).decode()
    heard = bytes(relay.heard)
    relay.listener.close()
    assert b"emp" in heard
    for name, value in {
        "a text": SECRET.encode(),
        "a number as text": str(PAY).encode(),
        "a number in binary": PAY.to_bytes(4, "big"),
    }.items():
        attack.attempt(f"{name} heard between proxy and server", value in heard)


def refused(stack, schema, **more):
    """What an application gets through such a proxy, and why not more."""
    with stack.another_proxy(serves=False, **more) as (_, url):
        try:
            with psycopg.connect(url, options=f"-c search_path={schema}") as app:
                return str(app.execute("SELECT name, pay FROM emp").fetchall()), ""
        except psycopg.Error as error:
            return "", str(error)


@pytest.fixture
def strangers(stack):
    """A key pair that the keeper does not know; file and public key."""
    state = stack.data.parent
    file = state / "proxy" / "stranger.key"
    command = [state / "bin" / "confide", "keygen", "client", "--out", file]
    done = subprocess.run(
        as_user("confide-proxy", command), capture_output=True, text=True, cwd="/", check=True
    )
    yield file, done.stdout.strip()
    file.unlink()


def test_another_proxy(stack, emp, schema, strangers, attack):
    """The attacker's own proxy knows the address of the database, and the keeper's public key."""
    file, _ = strangers
    seen, why = refused(stack, schema, client_key=str(file))
    attack.attempt("a proxy with a key that the keeper does not know", SECRET in seen)
    assert "not authorised" in why, why


def test_another_keeper(stack, emp, schema, strangers, attack):
    """The application's proxy was told of another keeper than the one that answers, as if somebody
    stood before its own with a key of his."""
    _, key = strangers
    seen, why = refused(stack, schema, keeper_key=key.split()[-1])
    attack.attempt("a keeper that is not the one that the proxy knows", SECRET in seen)
    assert why

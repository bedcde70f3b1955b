"""PAUSE waits until open transactions have ended, and lets nothing begin until RESUME; a proxy that
gets its socket from whoever starts it is restarted without a refused connection.

Mechanism: the proxy's console, and a socket as standard input. With a bug a statement or a
connection gets through, a transaction cannot end, or clients are refused while no proxy runs."""

import os
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from stack import as_user
from waiting import until


@pytest.fixture
def proxy(stack):
    with stack.another_proxy() as (_, url):
        yield url


@pytest.fixture
def threads():
    with ThreadPoolExecutor() as threads:
        yield threads


def console(url):
    return psycopg.connect(psycopg.conninfo.make_conninfo(url, dbname="confide"), autocommit=True)


def gauge(of, name) -> int:
    return int(dict(of.execute("SHOW STATS").fetchall())[f"confide_proxy_{name}"])


def insert(url, number):
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(f"INSERT INTO paused VALUES ({number}, 'x{number}')")


def test_pause(proxy, app, schema, threads):
    app.execute("CREATE TABLE paused (n int, name enc_text)")
    url = psycopg.conninfo.make_conninfo(proxy, options=f"-c search_path={schema}")
    with (
        console(proxy) as one,
        console(proxy) as other,
        psycopg.connect(url) as open_one,
        psycopg.connect(url, autocommit=True) as idle,
    ):
        try:
            open_one.execute("INSERT INTO paused VALUES (1, 'x1')")
            idle.execute("SELECT 1")
            assert gauge(other, "active") == 1
            pausing = threads.submit(one.execute, "PAUSE")
            until(lambda: gauge(other, "paused") == 1, "the proxy pauses")
            later = threads.submit(idle.execute, "INSERT INTO paused VALUES (3, 'x3')")
            new = threads.submit(insert, url, 4)
            # What has begun goes on.
            open_one.execute("INSERT INTO paused VALUES (2, 'x2')")
            assert not pausing.done()
            assert app.execute("SELECT count(*) FROM paused").fetchone() == (0,)
            open_one.commit()
            assert pausing.result().statusmessage == "PAUSE"
            assert gauge(other, "active") == 0
            rows = "SELECT n FROM paused WHERE name LIKE 'x%' ORDER BY n"
            assert app.execute(rows).fetchall() == [(1,), (2,)]
            assert not later.done()
            assert not new.done()
        finally:
            assert other.execute("RESUME").statusmessage == "RESUME"
        later.result()
        new.result()
        assert app.execute(rows).fetchall() == [(1,), (2,), (3,), (4,)]


def test_resume_ends_a_pause(proxy, threads):
    with console(proxy) as one, console(proxy) as other, psycopg.connect(proxy) as open_one:
        open_one.execute("SELECT 1")
        pausing = threads.submit(one.execute, "PAUSE")
        until(lambda: gauge(other, "paused") == 1, "the proxy pauses")
        other.execute("RESUME")
        with pytest.raises(psycopg.errors.QueryCanceled):
            pausing.result()
        assert gauge(other, "paused") == 0
        assert open_one.execute("SELECT 2").fetchone() == (2,)


def start(stack, listener, log):
    state = stack.data.parent
    command = [state / "bin" / "confide-proxy", "--config", state / "proxy" / "proxy.toml"]
    settings = {"LISTEN": "inherited", "SHUTDOWN_SECONDS": "600", "LOG_FORMAT": "json"}
    with log.open("w") as errors:
        return subprocess.Popen(
            as_user("confide-proxy", command),
            env={**os.environ, **{f"CONFIDE_PROXY_{k}": v for k, v in settings.items()}},
            stdin=listener,
            stderr=errors,
            cwd="/",
        )


def test_a_restart_refuses_nobody(stack, threads, tmp_path):
    def ask(url):
        with psycopg.connect(url) as session:
            return session.execute("SELECT 1").fetchone()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        parts = psycopg.conninfo.conninfo_to_dict(stack.app_url)
        parts["port"] = listener.getsockname()[1]
        url = psycopg.conninfo.make_conninfo(**parts)
        first = start(stack, listener, tmp_path / "first")
        second = None
        try:
            with psycopg.connect(url) as session:
                session.execute("CREATE TEMP TABLE kept (n int)")
                with console(url) as admin:
                    assert gauge(admin, "active") == 1
                first.send_signal(signal.SIGTERM)
                said = (tmp_path / "first").read_text
                until(lambda: '"stopping"' in said(), "the first proxy stops")
                # Nobody serves them now.
                waiting = [threads.submit(ask, url) for _ in range(5)]
                second = start(stack, listener, tmp_path / "second")
                assert [one.result() for one in waiting] == [(1,)] * 5
                # The first one still serves the transaction that it has.
                assert session.execute("SELECT count(*) FROM kept").fetchone() == (0,)
                session.commit()
            assert first.wait() == 0
        finally:
            for process in filter(None, (first, second)):
                process.kill()
                process.wait()


def test_a_standard_input_that_is_no_socket(stack, tmp_path):
    log = tmp_path / "log"
    assert start(stack, subprocess.DEVNULL, log).wait() == 1
    assert "cannot listen on inherited" in log.read_text()

"""A proxy's monitoring by HTTP: counters that grow with activity, whether the server accepts
connections, and nothing that anybody has written.

Mechanism: a proxy with `metrics_listen`. Right: Prometheus' text format; 200 and 503. Bug: a name
or a value is shown, or a proxy without its server reports that it is healthy."""

import http.client
import re

import psycopg
import pytest
from stack import free_port
from waiting import until

SECRET = "monitored s3cret"


@pytest.fixture
def proxy(stack):
    port = free_port()
    with stack.another_proxy(metrics_listen=f"127.0.0.1:{port}") as (_, url):
        yield url, port


def get(port, path, method="GET"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def metrics(port):
    status, text = get(port, "/metrics")
    assert status == 200
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) confide_proxy_\w+ .*|confide_proxy_\w+ \d+", line), line
    return {
        name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)
    }, text


def test_metrics(proxy, app, schema):
    url, port = proxy
    app.execute("CREATE TABLE monitored (name enc_text)")
    before, _ = metrics(port)
    with psycopg.connect(url, options=f"-c search_path={schema}", autocommit=True) as client:
        client.execute(f"INSERT INTO monitored VALUES ('{SECRET}')")
        assert client.execute("SELECT name FROM monitored").fetchall() == [(SECRET,)]
        after, text = metrics(port)
        assert after["confide_proxy_clients"] == before["confide_proxy_clients"] + 1
    for name in ("sealed", "opened", "handshakes"):
        name = f"confide_proxy_{name}_total"
        assert after[name] == before[name] + 1, name
    assert not {SECRET, "monitored", schema, "app"} & set(re.split(r"\W+", text))
    assert SECRET not in text
    assert get(port, "/")[0] == 404
    assert get(port, "/metrics", "POST")[0] == 405


def test_analyses_are_shared(proxy, app, schema):
    """Statements that differ in constants are analysed once for all sessions, and outside of
    transactions, too; the server does not report the same search path again and again."""
    url, port = proxy
    app.execute("CREATE TABLE plain (n int)")
    options = {"options": f"-c search_path={schema}", "autocommit": True}
    with psycopg.connect(url, **options) as one, psycopg.connect(url, **options) as other:
        for session in (one, other):
            session.execute("SELECT 1")
        before, _ = metrics(port)
        for n in range(1, 5):
            for session in (one, other):
                session.execute(f"SELECT n FROM plain WHERE n = {n}")
        after, _ = metrics(port)
    grown = {
        name: after[f"confide_proxy_{name}"] - before[f"confide_proxy_{name}"]
        for name in ("analyses_total", "analyses_reused_total", "schema_report_bytes_total")
    }
    assert grown == {
        "analyses_total": 8,
        "analyses_reused_total": 7,
        "schema_report_bytes_total": 0,
    }


def test_paths_within_transactions(app, dba, schema):
    """What a transaction did to the search path and to names of schemas is over with it: the next
    statement meets the right table. With a stale path a literal for a protected column would go in
    the clear, or be refused."""
    dba.execute(f"CREATE SCHEMA {schema}_b")
    try:
        dba.execute(f"GRANT ALL ON SCHEMA {schema}_b TO app")
        app.execute("CREATE TABLE meant (s enc_text)")
        app.execute(f"CREATE TABLE {schema}_b.meant (s text)")
        for end in ("COMMIT", "ROLLBACK"):
            app.execute("BEGIN")
            app.execute(f"SET LOCAL search_path = {schema}_b")
            app.execute("INSERT INTO meant VALUES ('plain')")
            app.execute(end)
            app.execute("INSERT INTO meant VALUES ('sealed')")
        app.execute("BEGIN")
        app.execute(f"SELECT set_config('search_path', '{schema}_b', true)")
        app.execute("INSERT INTO meant VALUES ('plain')")
        app.execute("COMMIT")
        app.execute("INSERT INTO meant VALUES ('sealed')")
        count = "SELECT count(*) FROM {}.meant WHERE s = '{}'"
        assert app.execute(count.format(schema, "sealed")).fetchone() == (3,)
        assert app.execute(count.format(f"{schema}_b", "plain")).fetchone() == (2,)
    finally:
        dba.execute(f"DROP SCHEMA {schema}_b CASCADE")


def test_health(stack, proxy):
    _, port = proxy
    assert get(port, "/healthz") == (200, "ok\n")
    try:
        stack.kill_postgres()
        until(lambda: get(port, "/healthz")[0] == 503, "the proxy says that it has no server")
    finally:
        stack.up()
    until(lambda: get(port, "/healthz")[0] == 200, "the proxy says that it has its server back")

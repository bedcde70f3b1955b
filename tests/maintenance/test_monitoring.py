"""What monitoring gets of a proxy by HTTP: counters that go up with what is done, whether the
server takes connections, and nothing that anybody has written.

Mechanism: a proxy with `metrics_listen`. Right: Prometheus' text format; 200 and 503. With a bug a
name or a value is shown, or a proxy without its server calls itself healthy."""

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


def test_health(stack, proxy):
    _, port = proxy
    assert get(port, "/healthz") == (200, "ok\n")
    try:
        stack.kill_postgres()
        until(lambda: get(port, "/healthz")[0] == 503, "the proxy says that it has no server")
    finally:
        stack.up()
    until(lambda: get(port, "/healthz")[0] == 200, "the proxy says that it has its server back")

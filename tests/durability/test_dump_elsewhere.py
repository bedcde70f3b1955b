"""A dump can be restored in another cluster whose keeper has the same root key; with another key
this fails, with the reason. Constraints, defaults, indexes and views over protected columns come
along in every form of dump, as within a cluster (test_dump_matrix.py)."""

import subprocess

import pytest
from copies import another_cluster
from dumps import FORMS, dump_and_restore, fill, finish, holds, restored, same
from stack import PG_BIN


def tool(name, *args, stdin=None, env=None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PG_BIN / name, *args], input=stdin, capture_output=True, check=False, env=env
    )


@pytest.fixture
def dump(stack, app, schema):
    app.execute("CREATE TABLE t (id int PRIMARY KEY, v enc_text UNIQUE, n enc_numeric(10, 2))")
    app.execute("INSERT INTO t SELECT g, 'value ' || g, g / 4.0 FROM generate_series(1, 50) g")
    done = tool("pg_dump", "-d", stack.dba_url, "-n", schema)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(params=["same key", "another key"])
def other(stack, request):
    with another_cluster(stack, "elsewhere", request.param == "same key") as made:
        yield request.param, made


@pytest.fixture(scope="module")
def elsewhere(stack):
    with another_cluster(stack, "far", same_key=True) as made:
        yield made


def test_restore(dump, other, schema):
    """Straight, and then through the proxy."""
    key, elsewhere = other
    load = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", elsewhere.dba_url]
    done = tool(*load, stdin=dump)
    assert done.returncode != 0
    assert b"no restore ticket" in done.stderr
    with elsewhere.connect_dba() as dba:
        dba.execute(f"DROP SCHEMA {schema} CASCADE")
    loads(dump, key, elsewhere, schema, elsewhere.dba_url)
    with elsewhere.connect_dba() as dba:
        dba.execute(f"DROP SCHEMA {schema} CASCADE")
    loads(dump, key, elsewhere, schema, elsewhere.app_url)


def loads(dump, key, elsewhere, schema, address):
    load = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", address]
    done = tool(*load, stdin=dump, env=elsewhere.restoring("app"))
    if key == "another key":
        assert done.returncode != 0
        assert b"of a keeper with another root key" in done.stderr
        assert b"value 1" not in done.stderr
        with elsewhere.connect_dba() as dba:
            assert dba.execute(f"SELECT count(*) FROM {schema}.t").fetchone() == (0,)
        return
    assert done.returncode == 0, done.stderr
    with elsewhere.connect_app(options=f"-c search_path={schema}") as app:
        row = app.execute("SELECT count(*), sum(n), max(v) FROM t").fetchone()
        assert row == (50, 50 * 51 / 8, "value 9")
        app.execute("INSERT INTO t VALUES (51, 'value 51', 1)")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("source", "to"), [("straight", "straight"), ("straight", "proxy"), ("proxy", "proxy")]
)
def test_round_trip(stack, app, elsewhere, schema, tmp_path, source, to, form):
    fill(app)
    address = stack.dba_url if source == "straight" else stack.app_url
    addresses = {"straight": elsewhere.dba_url, "proxy": elsewhere.app_url}
    env = elsewhere.restoring("app", "--uses", "0") if source == "straight" else None
    try:
        dump_and_restore(address, addresses[to], schema, form, tmp_path, env)
        with restored(addresses, schema) as connection:
            same(app, connection)
            finish(connection)
            holds(connection)
    finally:
        with elsewhere.connect_dba() as dba:
            dba.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')

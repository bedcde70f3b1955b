"""A dump can be restored in another cluster whose keeper has the same root key; with another key
this fails, with the reason."""

import shutil
import subprocess

import pytest
from copies import owned, place
from stack import PG_BIN, Stack


def tool(name, *args, stdin=None, env=None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [PG_BIN / name, *args], input=stdin, capture_output=True, timeout=300, check=False, env=env
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
    """Another cluster with another keeper."""
    made = Stack(run=stack.run.with_name(f"{stack.run.name}-elsewhere"))
    if request.param == "same key":
        home = place(made.run) / "keeper"
        home.mkdir(parents=True)
        for file in (place(stack.run) / "keeper").glob("root.key*"):
            shutil.copy(file, home)
        owned("confide-keeper", home)
    made.up()
    yield request.param, made
    made.down("--remove")


def test_restore(dump, other, schema):
    """Straight, and then through the proxy."""
    key, elsewhere = other
    load = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", elsewhere.dba_url]
    done = tool(*load, stdin=dump)
    assert done.returncode != 0
    assert b"no restore ticket" in done.stderr
    with elsewhere.connect_dba() as dba:
        dba.execute(f"DROP SCHEMA {schema} CASCADE")
    restored(dump, key, elsewhere, schema, elsewhere.dba_url)
    with elsewhere.connect_dba() as dba:
        dba.execute(f"DROP SCHEMA {schema} CASCADE")
    restored(dump, key, elsewhere, schema, elsewhere.app_url)


def restored(dump, key, elsewhere, schema, address):
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

"""pgbench's own transactions on protected balances, in every query mode and several clients."""

import re
import subprocess

import pytest
from results import run
from stack import PG_BIN

DDL = """
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance enc_int4, filler enc_bpchar(88));
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance enc_int4, filler char(84));
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance enc_int4, filler char(84));
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta enc_int4, mtime enc_timestamp,
                              filler char(22));
"""


@pytest.fixture
def bench(app):
    app.execute(DDL)
    app.execute("INSERT INTO pgbench_branches VALUES (1, 0)")
    for table, rows in (("tellers", 10), ("accounts", 100000)):
        app.execute(
            f"INSERT INTO pgbench_{table} SELECT g, 1, b.bbalance "
            f"FROM generate_series(1, {rows}) g, pgbench_branches b"
        )
    return app


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("script", ["tpcb-like", "select-only"])
def test_mode(stack, bench, schema, mode, script):
    done = subprocess.run(
        [
            *(PG_BIN / "pgbench", "-n", "-M", mode, "-b", script, "-c", "4", "-j", "2", "-t", "50"),
            stack.app_url,
        ],
        env={"PGOPTIONS": f"-c search_path={schema}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"actually processed: 200/200", done.stdout), done.stdout
    if script == "tpcb-like":
        sums = run(
            bench,
            "SELECT (SELECT sum(abalance) FROM pgbench_accounts), "
            "(SELECT sum(tbalance) FROM pgbench_tellers), "
            "(SELECT sum(bbalance) FROM pgbench_branches), "
            "(SELECT sum(delta) FROM pgbench_history), (SELECT count(*) FROM pgbench_history)",
        ).rows[0]
        assert len(set(sums[:4])) == 1
        assert sums[4] == "200"

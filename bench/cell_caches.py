"""A part of `make bench-ablations`: what the keeper's caches for the family rnd_ are worth.

The same statements over cells, beside plaintext: with no cache, with opened cells kept
(`cell_cache`), and with answers kept, too (`answer_cache`). Each variant is a restart of the
keeper, the statements run once before they are measured, so the caches are as full as they get.
Times are medians; the keeper's processor time moves less than they do on a busy machine, and hits
show that it was the cache. With too small a cache nothing is found again, so it only costs.
"""

import time
from collections.abc import Callable

import psycopg
import servers
from report import median, progress, ratio

SCHEMA = {"plain": "caches_plain", "protected": "caches_rnd"}
VARIANTS = {
    "caches off": {"cell_cache": "0", "answer_cache": "0"},
    "opened cells": {"cell_cache": "64MB", "answer_cache": "0"},
    "too few of them": {"cell_cache": "1MB", "answer_cache": "0"},
    "and answers": {"cell_cache": "64MB", "answer_cache": "64MB"},
}
STATEMENTS = {
    "filter": "SELECT id FROM item WHERE k BETWEEN 100 AND 110",
    "pattern": "SELECT id FROM item WHERE c LIKE '%a1%'",
    "groups": "SELECT k % 7, sum(k) FROM item GROUP BY 1 ORDER BY 1",
    "by index": "SELECT id FROM item WHERE k = 500",
    "texts": "SELECT max(c) FROM item",
}
COUNTERS = {"cell_cache_hits_total": "cells found", "answer_cache_hits_total": "answers found"}


def load(connection: psycopg.Connection, name: str, rows: int, text: Callable[[int], str]) -> None:
    rnd = "rnd_" if name == "protected" else ""
    connection.execute(f"CREATE SCHEMA {SCHEMA[name]}")
    connection.execute(f"SET search_path = {SCHEMA[name]}")
    connection.execute(f"CREATE TABLE item (id int PRIMARY KEY, k {rnd}int4, c {rnd}text)")
    with connection.cursor().copy("COPY item FROM STDIN") as copy:
        for i in range(rows):
            copy.write_row((i, i * 7919 % 1000, text(i)))
    connection.execute("CREATE INDEX ON item (k)")
    connection.execute("VACUUM ANALYZE item")


def run(connection: psycopg.Connection, schema: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of each statement, after it has run once."""
    connection.execute(f"SET search_path = {schema}")
    found: dict[str, list[float]] = {}
    for name, statement in STATEMENTS.items():
        by_index = name == "by index"
        for method in ("seqscan", "indexscan", "bitmapscan", "indexonlyscan"):
            wanted = by_index != (method == "seqscan")
            connection.execute(f"SET enable_{method} = {'on' if wanted else 'off'}")
        for turn in range(rounds + 1):
            start = time.monotonic()
            connection.execute(statement).fetchall()
            if turn > 0:
                found.setdefault(name, []).append(time.monotonic() - start)
    connection.execute("RESET ALL")
    return found


def measure(stack, plain: psycopg.Connection, restart, seconds, rounds: int) -> dict:
    """`restart` starts a keeper with settings and connects, `seconds` is its processor time."""
    found = {}
    for variant, settings in VARIANTS.items():
        beside = run(plain, SCHEMA["plain"], rounds)
        with restart(stack, None, **settings) as connection:
            run(connection, SCHEMA["protected"], 0)
            before = seconds(stack)
            runs = run(connection, SCHEMA["protected"], rounds)
            spent = seconds(stack) - before
        with stack.connect_dba() as dba:
            counters = servers.stat_keeper(dba)
        times = {name: median(runs[name]) for name in STATEMENTS}
        found[variant] = {
            "seconds": times,
            "times": {name: ratio(times[name], median(beside[name])) for name in STATEMENTS},
            "processor": spent,
            "runs": runs,
            **{counter: int(counters[counter]) for counter in COUNTERS},
        }
        progress(f"caches: {variant}")
    return found


def grid(found: dict) -> tuple[list[str], list[list]]:
    """The table of the report and of the document."""
    head = ["cells, times plaintext", *STATEMENTS, "keeper's processor s", *COUNTERS.values()]
    rows = [
        [
            *(name, *(cell["times"][s] for s in STATEMENTS), cell["processor"]),
            *(cell[counter] for counter in COUNTERS),
        ]
        for name, cell in found.items()
    ]
    return head, rows

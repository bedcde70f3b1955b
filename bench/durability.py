"""`make bench-durability`: what a durable row costs: space, commits of single rows, COPY, WAL,
recovery.

Plaintext and protected stand in the same PostgreSQL with fsync on, in alternation; protected runs
through the client library, so that no proxy's hop is in the figures.

Parameters: SECONDS of each measurement, ROUNDS, CLIENTS, SF of TPC-H for space and COPY, WAL_MB
before the kill; PARTS of space, commits, copy, recovery (not all: printed, not kept).
"""

import os
import signal
import time
from pathlib import Path

import plots
import servers
import tpch_data
from driver import driver
from report import Report, median, parameter, parameters, progress, ratio, table
from stack import kill

SECONDS = parameter("SECONDS", 3.0)
ROUNDS = parameter("ROUNDS", 3)
CLIENTS = [int(n) for n in parameter("CLIENTS", "1,4").split(",")]
SCALE = parameter("SF", 0.1)
WAL_MB = parameter("WAL_MB", 300)
ALL_PARTS = "space,commits,copy,recovery"
PARTS = parameters("PARTS", ALL_PARTS)
ROWS = 10_000
SIDES = {"plain": ("direct", "d_plain"), "protected": ("library", "d_protected")}
PLACES = ["tables", "indexes", "keeper", "total"]


def load(stack, path: str, schema: str, table: str, file: Path) -> tuple[float, int]:
    """Seconds, and bytes of WAL."""
    with stack.connect_dba() as dba:
        before = wal_position(dba)
        figures = driver(stack, path, schema, "copy", "--table", table, "--file", file)
        return figures["seconds"], wal_position(dba) - before


def space(stack, report: Report) -> None:
    """Bytes on disk of TPC-H with its indexes, on both sides, and of the WAL of its loading."""
    files = tpch_data.generate(SCALE)
    found = {}
    with stack.connect_dba() as dba, servers.connect(stack.app_url) as app:
        for name, (path, schema) in SIDES.items():
            app.execute(f"SET search_path = {schema}")
            app.execute(tpch_data.ddl(name == "protected"))
            dba.execute("CHECKPOINT")
            wal = sum(
                load(stack, path, schema, table, files / f"{table}.tbl")[1]
                for table in tpch_data.TABLES
            )
            tpch_data.finish(app)
            found[name] = {"wal": wal, **tpch_data.storage(dba, schema)}
    found["protected"]["keeper"] = servers.keeper_files(stack)
    found["protected"]["keeper_memory"] = servers.keeper_memory(stack)
    for side in found.values():
        side["total"] = sum(side.get(place, 0) for place in PLACES[:3])
        side["bytes_per_row"] = side["total"] / side["rows"]
        side["wal_bytes_per_row"] = side["wal"] / side["rows"]
    found["ratio"] = found["protected"]["total"] / found["plain"]["total"]
    report.results["storage"] = found
    progress(f"space: {found['ratio']:.2f} times plaintext")


def make_tables(stack) -> None:
    with servers.connect(stack.app_url) as app:
        for name, (_, schema) in SIDES.items():
            enc = "enc_" if name == "protected" else ""
            app.execute(f"SET search_path = {schema}")
            app.execute(f"CREATE TABLE commits (id serial PRIMARY KEY, n {enc}int4, s {enc}text)")
            app.execute(
                "INSERT INTO commits (n, s) SELECT i, md5(i::text)"
                f" FROM generate_series(1, {ROWS}) i"
            )


def commits(stack, report: Report) -> None:
    """Commits of one row each: medians over the rounds, sides in alternation."""
    report.results["commits"] = found = []
    cases = [
        (kind, sync, n) for kind in ("insert", "update") for sync in ("on", "off") for n in CLIENTS
    ]
    for kind, synchronous, clients in cases:
        runs = {name: [] for name in SIDES}
        for turn in range(ROUNDS):
            for name, (path, schema) in SIDES.items():
                figures = driver(
                    *(stack, path, schema, "commits", "--kind", kind, "--rows", ROWS),
                    *("--synchronous", synchronous, "--clients", clients),
                    *("--seconds", SECONDS, "--seed", turn + 1),
                )
                runs[name].append(figures["per_second"])
        entry = {"kind": kind, "synchronous_commit": synchronous, "clients": clients}
        entry |= {name: median(values) for name, values in runs.items()}
        entry |= {"ratio": ratio(entry["protected"], entry["plain"]), "runs": runs}
        found.append(entry)
        progress(
            f"{kind}, synchronous_commit {synchronous}, {clients} clients: {entry['ratio']:.2f}"
        )


def wal_position(dba) -> int:
    return dba.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::int8").fetchone()[0]


def make_lineitem(stack) -> None:
    """Without constraints and indexes: what is timed is COPY."""
    with servers.connect(stack.app_url) as app:
        for _, schema in SIDES.values():
            app.execute(f"DROP TABLE IF EXISTS {schema}.lineitem CASCADE")
            app.execute(f"SET search_path = {schema}")
            ddl = tpch_data.ddl(schema == SIDES["protected"][1])
            app.execute(next(part for part in ddl.split(";") if "TABLE lineitem" in part))


def copy(stack, report: Report) -> None:
    """Seconds and bytes of WAL to load lineitem."""
    file = tpch_data.generate(SCALE) / "lineitem.tbl"
    rows = sum(1 for _ in file.open("rb"))
    runs = {name: [] for name in SIDES}
    wal = {}
    for _ in range(ROUNDS):
        for name, (path, schema) in SIDES.items():
            with stack.connect_dba() as dba:
                dba.execute(f"TRUNCATE {schema}.lineitem")
                dba.execute("CHECKPOINT")
            seconds, written = load(stack, path, schema, "lineitem", file)
            wal[name] = written / rows
            runs[name].append(seconds)
        progress(f"lineitem: {', '.join(f'{n} {r[-1]:.2f} s' for n, r in runs.items())}")
    entry = {name: median(values) for name, values in runs.items()}
    entry |= {"ratio": ratio(entry["protected"], entry["plain"]), "runs": runs, "rows": rows}
    entry["wal_bytes_per_row"] = wal
    report.results["copy"] = entry


def recovery(stack, report: Report) -> None:
    """Kills PostgreSQL and the keeper with WAL_MB of WAL since the checkpoint of both, and waits
    for the first row. PostgreSQL's own part is in its log. Medians over the rounds."""
    runs = {name: [recover(stack, name) for _ in range(ROUNDS)] for name in SIDES}
    report.results["recovery"] = {
        name: {key: median([run[key] for run in all_runs]) for key in all_runs[0]}
        for name, all_runs in runs.items()
    }


def recover(stack, name: str) -> dict:
    path, schema = SIDES[name]
    file = tpch_data.generate(SCALE) / "lineitem.tbl"
    with stack.connect_dba() as dba:
        dba.execute(f"TRUNCATE {schema}.lineitem")
    servers.keeper_files(stack)  # a checkpoint of both
    with stack.connect_dba() as dba:
        before, loads = wal_position(dba), 0
        while wal_position(dba) - before < WAL_MB * 2**20:
            driver(stack, path, schema, "copy", "--table", "lineitem", "--file", file)
            loads += 1
        written = wal_position(dba) - before
    rows = loads * sum(1 for _ in file.open("rb"))
    crash(stack)
    start = time.monotonic()
    stack.up()
    up = time.monotonic() - start
    with servers.connect(stack.app_url, schema) as app:
        app.execute("SELECT l_comment FROM lineitem LIMIT 1").fetchone()
        answered = time.monotonic() - start
        found = app.execute("SELECT count(l_comment) FROM lineitem").fetchone()[0]
        if found != rows:
            raise RuntimeError(f"{found} of {rows} rows came back")
    progress(f"{name}: {written / 2**20:.0f} MB of WAL, first answer after {answered:.2f} s")
    return {
        "wal_mb": written / 2**20,
        "up_seconds": up,
        "first_answer_seconds": answered,
        "postgres_redo_seconds": redo_seconds(stack),
        "rows": rows,
    }


def crash(stack) -> None:
    postmaster, keeper = stack.postmaster_pid(), stack.keeper_pid()
    os.kill(postmaster, signal.SIGSTOP)  # starts no other process
    kill(keeper)
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    kill(postmaster)
    for pid in children:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            continue


def redo_seconds(stack) -> float | None:
    """What PostgreSQL's log says of its last recovery."""
    lines = (stack.logs / "postgres.log").read_text().splitlines()
    done = [line for line in lines if "redo done at" in line]
    return float(done[-1].rsplit("elapsed:", 1)[1].split()[0]) if done else None


def print_space(storage: dict) -> None:
    keys = [*PLACES, "wal"]
    rows = [
        [name, *(storage[name].get(k, 0) / 1e6 for k in keys), storage[name]["bytes_per_row"]]
        for name in SIDES
    ]
    table(["TPC-H, MB", *keys, "bytes a row"], rows)
    print(f"  total of both sides: {storage['ratio']:.2f} times plaintext")


def print_commits(entries: list[dict]) -> None:
    head = ["commits/s", "synchronous_commit", "clients", "plain", "protected", "ratio"]
    keys = ["kind", "synchronous_commit", "clients", "plain", "protected", "ratio"]
    table(head, [[entry[k] for k in keys] for entry in entries])


def print_copy(entry: dict) -> None:
    sides = list(SIDES)
    table(
        ["COPY of lineitem", *sides, "ratio"],
        [
            ["seconds", *(entry[n] for n in sides), entry["ratio"]],
            ["microseconds a row", *(entry[n] / entry["rows"] * 1e6 for n in sides), None],
            [
                "WAL bytes a row",
                *(entry["wal_bytes_per_row"][n] for n in sides),
                ratio(*(entry["wal_bytes_per_row"][n] for n in reversed(sides))),
            ],
        ],
    )


def print_recovery(found: dict) -> None:
    keys = ["wal_mb", "postgres_redo_seconds", "up_seconds", "first_answer_seconds"]
    table(["recovery", *SIDES], [[k, *(found[n][k] for n in SIDES)] for k in keys])


PRINTED = {
    "storage": print_space,
    "commits": print_commits,
    "copy": print_copy,
    "recovery": print_recovery,
}


def plot(report: Report) -> None:
    entries = report.results["commits"]
    labels = [f"{e['kind']}\nsync {e['synchronous_commit']}\n{e['clients']} cl." for e in entries]
    series = {name: [entry[name] for entry in entries] for name in SIDES}
    plots.bars(report.plot(), "Commits of one row", labels, series, "commits per second")


def main() -> None:
    report = Report(
        "durability",
        {
            **{"SECONDS": SECONDS, "ROUNDS": ROUNDS, "CLIENTS": CLIENTS, "SF": SCALE},
            **{"WAL_MB": WAL_MB, "fsync": "on", **servers.SETTINGS},
        },
    )
    with servers.running(log_checkpoints="off") as stack:
        with servers.connect(stack.app_url) as app:
            for _, schema in SIDES.values():
                app.execute(f"CREATE SCHEMA {schema}")
        if "space" in PARTS:
            space(stack, report)
        if "commits" in PARTS:
            make_tables(stack)
            commits(stack, report)
        make_lineitem(stack)
        if "copy" in PARTS:
            copy(stack, report)
        if "recovery" in PARTS:
            recovery(stack, report)
    for key, found in report.results.items():
        PRINTED[key](found)
    if set(PARTS) == set(ALL_PARTS.split(",")):
        plot(report)
        report.write()


if __name__ == "__main__":
    main()

"""`make bench-sysbench`: stock sysbench on its table, plain and protected, and the same statements
by the client library.

Plaintext (straight to PostgreSQL) and protected run in alternation. Paths (PATHS): proxy is stock
sysbench through the proxy beside stock sysbench without it; library is our driver with the
client library beside our driver without it, because sysbench cannot use a library of ours.
Protected are all columns but the key `id`; with KEYS=protected that, too.

Debian's sysbench 1.0.20 knows no Zipf distribution: there its `pareto` stands for a skewed load
(parameter skewed_in_sysbench); the driver's is Zipf's with exponent 0.8, as in later sysbench.

Parameters: ROWS, WORKLOADS, DISTRIBUTIONS (uniform, zipfian), PATHS, CLIENTS, SECONDS, ROUNDS,
KEYS.
"""

import os
import re
import subprocess

import plots
import servers
from driver import driver
from report import Report, geometric_mean, median, parameter, parameters, progress, ratio, table

ROWS = parameter("ROWS", 20_000)
CLIENTS = [int(n) for n in parameters("CLIENTS", "4")]
SECONDS = parameter("SECONDS", 2.0)
ROUNDS = parameter("ROUNDS", 1)
PATHS = parameters("PATHS", "library,proxy")
DISTRIBUTIONS = parameters("DISTRIBUTIONS", "uniform,zipfian")
KEYS = parameter("KEYS", "plain")
SCRIPTS = {
    "read-only": "oltp_read_only",
    "read-write": "oltp_read_write",
    "write-only": "oltp_write_only",
    "insert": "oltp_insert",
    "point-select": "oltp_point_select",
    "range": "select_random_ranges",
}
WORKLOADS = parameters("WORKLOADS", ",".join(SCRIPTS))
SCHEMAS = {"plain": "sb_plain", "protected": "sb_protected"}


def sysbench(stack, path: str, schema: str, *arguments: str) -> str:
    url = stack.app_url
    password = url.split(":")[2].rpartition("@")[0]
    port = stack.environment["CONFIDE_APP_PORT" if path == "proxy" else "CONFIDE_PGPORT"]
    done = subprocess.run(
        [
            *("sysbench", *arguments, "--db-driver=pgsql", "--pgsql-host=127.0.0.1"),
            *(f"--pgsql-port={port}", "--pgsql-user=app", f"--pgsql-password={password}"),
            *("--pgsql-db=app", f"--table-size={ROWS}"),
        ],
        env={**os.environ, "PGOPTIONS": f"-c search_path={schema}"},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0 or "FATAL" in done.stdout:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "FATAL" in line]
        raise RuntimeError(f"sysbench {path} {arguments[0]}: " + " ".join(lines[:2]))
    return done.stdout


def make_tables(stack) -> None:
    """sysbench fills the plain table; the protected one is filled from it."""
    enc = "enc_" if KEYS == "protected" else ""
    with servers.connect(stack.app_url) as app:
        for schema in SCHEMAS.values():
            app.execute(f"CREATE SCHEMA {schema}")
        # With identifiers of its own, as sysbench's insert wants them with --auto_inc=off.
        sysbench(stack, "direct", "sb_plain", "oltp_read_only", "--auto_inc=off", "prepare")
        app.execute("SET search_path = sb_protected")
        app.execute(
            f"CREATE TABLE sbtest1 (id {enc}{'int4' if enc else 'int'} PRIMARY KEY,"
            " k enc_int4 NOT NULL, c enc_bpchar(120) NOT NULL, pad enc_bpchar(60) NOT NULL)"
        )
        app.execute("INSERT INTO sbtest1 SELECT id, k, c, pad FROM sb_plain.sbtest1")
        app.execute("CREATE INDEX ON sbtest1 (k)")
        app.execute("SET default_statistics_target = 10")
        app.execute("VACUUM ANALYZE sbtest1")
        app.execute("VACUUM ANALYZE sb_plain.sbtest1")


def skewed() -> str:
    """What stock sysbench has for a skewed choice of rows."""
    told = subprocess.run(["sysbench", "--help"], capture_output=True, text=True).stdout
    return "zipfian" if "zipfian" in told else "pareto"


def by_sysbench(stack, side, workload, distribution, clients, turn) -> dict:
    path = "proxy" if side == "protected" else "direct"
    chosen = "uniform" if distribution == "uniform" else skewed()
    told = sysbench(
        *(stack, path, SCHEMAS[side], SCRIPTS[workload], "--auto_inc=off"),
        *(f"--rand-type={chosen}", f"--threads={clients}", f"--time={max(1, round(SECONDS))}"),
        *(f"--rand-seed={turn + 1}", "--percentile=99", "run"),
    )
    rate = float(re.search(r"transactions:\s+\d+\s+\(([\d.]+) per sec", told).group(1))
    return {
        "per_second": rate,
        "p99": float(re.search(r"99th percentile:\s+([\d.]+)", told).group(1)),
        "retries": int(re.search(r"ignored errors:\s+(\d+)", told).group(1)),
    }


def by_driver(stack, side, workload, distribution, clients, turn) -> dict:
    path = "library" if side == "protected" else "direct"
    figures = driver(
        *(stack, path, SCHEMAS[side], "sysbench", "--workload", workload),
        *("--distribution", distribution, "--rows", ROWS, "--clients", clients),
        *("--seconds", SECONDS, "--seed", turn + 1),
    )
    return {
        "per_second": figures["per_second"],
        "p99": figures["all"]["p99"],
        "retries": figures["retries"],
    }


RUNNERS = {"proxy": by_sysbench, "library": by_driver}


def cell(stack, path, workload, distribution, clients) -> dict:
    runs = {"plain": [], "protected": []}
    for turn in range(ROUNDS):
        for side, found in runs.items():
            # Rows that inserts of another run have made must not be in the way.
            seed = turn * 2 + (side == "protected")
            found.append(RUNNERS[path](stack, side, workload, distribution, clients, seed))
    entry = {"workload": workload, "distribution": distribution, "path": path, "clients": clients}
    for side, found in runs.items():
        entry[side] = median([run["per_second"] for run in found])
        entry[side + "_p99"] = median([run["p99"] for run in found])
    entry |= {"ratio": ratio(entry["protected"], entry["plain"]), "runs": runs}
    progress(
        f"{workload}, {distribution}, {path}, {clients} clients: plain {entry['plain']:.0f}/s,"
        f" protected {entry['protected']:.0f}/s, ratio {entry['ratio']:.2f}"
    )
    return entry


def plot(report: Report, cells: list[dict]) -> None:
    clients = CLIENTS[-1]
    series = {}
    for path in PATHS:
        for distribution in DISTRIBUTIONS:
            series[f"{path}, {distribution}"] = [
                c["ratio"]
                for c in cells
                if (c["path"], c["distribution"], c["clients"]) == (path, distribution, clients)
            ]
    title = f"sysbench, {clients} clients: throughput over plaintext"
    plots.bars(report.plot(), title, WORKLOADS, series, "of plaintext", goal=1)


def main() -> None:
    given = {"ROWS": ROWS, "WORKLOADS": WORKLOADS, "DISTRIBUTIONS": DISTRIBUTIONS, "PATHS": PATHS}
    given |= {"CLIENTS": CLIENTS, "SECONDS": SECONDS, "ROUNDS": ROUNDS, "KEYS": KEYS}
    given |= {"skewed_in_sysbench": skewed(), **servers.SETTINGS}
    report = Report(f"sysbench{servers.SUFFIX}", given)
    with servers.running() as stack:
        make_tables(stack)
        cells = [
            cell(stack, path, workload, distribution, clients)
            for workload in WORKLOADS
            for distribution in DISTRIBUTIONS
            for clients in CLIENTS
            for path in PATHS
        ]
    report.results["cells"] = cells
    report.results["geometric_mean"] = {
        path: geometric_mean(c["ratio"] for c in cells if c["path"] == path) for path in PATHS
    }
    keys = ["workload", "distribution", "path", "clients", "plain", "protected", "ratio"]
    keys += ["plain_p99", "protected_p99"]
    head = [*keys[:4], "plain/s", "protected/s", "ratio", "plain p99 ms", "p99 ms"]
    table(head, [[c[k] for k in keys] for c in cells])
    for path, mean in report.results["geometric_mean"].items():
        print(f"  {path}: geometric mean {mean or 0:.2f} of plaintext")
    plot(report, cells)
    report.write()


if __name__ == "__main__":
    main()

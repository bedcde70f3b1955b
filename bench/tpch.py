"""`make bench-tpch SF=0.1`: the 22 TPC-H queries on plain and on protected tables of the same
PostgreSQL, in alternation. Plaintext runs straight to PostgreSQL, as without Confide; protected
runs through the proxy, as an application does.

Parameters: SF scale, ROUNDS of each query, MODES of protected queries (on, off, no_x: see
servers.py), QUERIES by number, PLANS to print of the slowest, SETTINGS (default, tuned; see
servers.py), WORKERS (0,2: all queries without parallel workers, then with two), WORK_MEM,
SHARED_BUFFERS, LIMIT in seconds for one query, PRIORITY (servers.py).

Beside times stand waits: how often a backend of the protected side, or a parallel worker, waited
for an answer of the keeper. They do not depend on the machine.
"""

import time

import plots
import psycopg
import servers
import tpch_data
from report import Report, geometric_mean, median, parameter, parameters, progress, ratio, table
from results import run

SCALE = parameter("SF", 0.1)
ROUNDS = parameter("ROUNDS", 3)
QUERIES = [int(n) for n in parameters("QUERIES", "")] or list(tpch_data.QUERIES)
LIMIT = parameter("LIMIT", 120)
PLANS = parameter("PLANS", 0)
PRIORITY = parameter("PRIORITY", 0)
WORKERS_SETTING = "max_parallel_workers_per_gather"
SIDES = {"plain": "tpch_plain", "protected": "tpch_protected"}
# Row at a time is the reference for results, not for speed: one run is enough.
ROUNDS_OF = {"off": 1}
PARTS = ("tables", "indexes", "keeper", "total")


def load(sides, report: Report) -> None:
    directory = tpch_data.generate(SCALE)
    seconds = {name: {} for name in sides}
    for name, connection in sides.items():
        connection.execute(f"CREATE SCHEMA {SIDES[name]}")
        connection.execute(f"SET search_path = {SIDES[name]}")
        connection.execute(tpch_data.ddl(name == "protected"))
    for relation in tpch_data.TABLES:
        for name, connection in sides.items():
            seconds[name][relation] = tpch_data.copy(connection, relation, directory)
        plain, protected = (seconds[name][relation] for name in sides)
        progress(f"loaded {relation}: plain {plain:.2f} s, protected {protected:.2f} s")
    for name, connection in sides.items():
        seconds[name] |= tpch_data.finish(connection)
        progress(f"{name}: " + ", ".join(f"{k} {v:.2f} s" for k, v in seconds[name].items()))
    report.results["load"] = seconds


def execute(connection: psycopg.Connection, number: int):
    """Seconds of the query, and its result as text, or the SQLSTATE."""
    statements = tpch_data.query(number, SCALE)
    start = time.monotonic()
    outcomes = [run(connection, statement) for statement in statements]
    seconds = time.monotonic() - start
    failed = next((outcome for outcome in outcomes if outcome.sqlstate), None)
    if failed and len(statements) > 1:
        run(connection, "DROP VIEW IF EXISTS revenue0")
    return seconds, outcomes, failed


def answered(connection: psycopg.Connection) -> int:
    """Answers that this session and its parallel workers have waited for, this one among them."""
    return int(servers.stat_keeper(connection)["session.answered_total"])


def measure(number: int, sides, modes) -> dict:
    """Medians of a query: plaintext, and protected in each mode; waits of the last run."""
    runs: dict[str, list[float]] = {"plain": [], **{mode.name: [] for mode in modes}}
    entry = {"same": True, "errors": {}, "waits": {}}
    expected = None
    for turn in range(ROUNDS):
        seconds, expected, _ = execute(sides["plain"], number)
        runs["plain"].append(seconds)
        for mode in modes:
            if turn >= ROUNDS_OF.get(mode.name, ROUNDS) or mode.name in entry["errors"]:
                continue
            mode.apply(sides["protected"])
            before = answered(sides["protected"])
            seconds, outcomes, failed = execute(sides["protected"], number)
            entry["waits"][mode.name] = answered(sides["protected"]) - before - 1
            if failed:
                entry["errors"][mode.name] = f"{failed.sqlstate} {failed.message}"
                continue
            runs[mode.name].append(seconds)
            entry["same"] &= all(map(same, expected, outcomes))
    entry["runs"] = {name: [round(s, 5) for s in values] for name, values in runs.items()}
    entry["seconds"] = {name: median(values) for name, values in runs.items()}
    return entry


def same(one, other) -> bool:
    """Ties in the order may come in any order."""
    return one.types == other.types and sorted(map(str, one.rows)) == sorted(map(str, other.rows))


def line(number: int, entry: dict, modes) -> list:
    seconds = entry["seconds"]
    ratios = [ratio(seconds[mode.name], seconds["plain"]) for mode in modes]
    waits = [entry["waits"].get(mode.name) for mode in modes]
    note = "" if entry["same"] else "result differs"
    note = ", ".join([*filter(None, [note]), *(f"{m}: {e}" for m, e in entry["errors"].items())])
    times = [seconds[mode.name] for mode in modes]
    return [f"Q{number:02}", seconds["plain"], *times, *ratios, *waits, note[:60]]


def head(modes) -> list[str]:
    names = [mode.name for mode in modes]
    ratios, waits = (f"{n}/plain" for n in names), (f"{n} waits" for n in names)
    return ["query", "plain s", *(f"{n} s" for n in names), *ratios, *waits, ""]


def summary(queries: dict, modes) -> dict:
    """For each mode, over the queries that ran: totals, geometric mean and worst ratio."""
    found = {}
    for mode in modes:
        done = [q["seconds"] for q in queries.values() if q["seconds"][mode.name]]
        ratios = [ratio(s[mode.name], s["plain"]) for s in done]
        found[mode.name] = {
            "queries": len(done),
            "plain_total": sum(s["plain"] for s in done),
            "total": sum(s[mode.name] for s in done),
            "geometric_mean": geometric_mean(ratios),
            "worst": max(ratios, default=None),
        }
    return found


def storage(stack, report: Report) -> None:
    with stack.connect_dba() as dba:
        found = {name: tpch_data.storage(dba, schema) for name, schema in SIDES.items()}
    found["protected"]["keeper"] = servers.keeper_files(stack)
    found["protected"]["keeper_memory"] = servers.keeper_memory(stack)
    plain, protected = found["plain"], found["protected"]
    for side in found.values():
        side["total"] = side["tables"] + side["indexes"] + side.get("keeper", 0)
        side["bytes_per_row"] = side["total"] / side["rows"]
    found["ratio"] = protected["total"] / plain["total"]
    report.results["storage"] = found
    rows = [
        [name, *(side.get(part, 0) / 1e6 for part in PARTS), side["bytes_per_row"]]
        for name, side in (("plain", plain), ("protected", protected))
    ]
    table(["storage, MB", *PARTS, "bytes a row"], rows)
    print(f"  total of both sides: {found['ratio']:.2f} times plaintext")


def print_summary(report: Report) -> None:
    names = ["queries", "plain_total", "total", "geometric_mean", "worst"]
    rows = [
        [workers, mode, *(total[n] for n in names)]
        for workers, part in report.results["workers"].items()
        for mode, total in part["summary"].items()
    ]
    table(["workers", "mode", *names], rows)


def print_load(report: Report) -> None:
    plain, protected = report.results["load"].values()
    rows = [[k, plain[k], protected[k], ratio(protected[k], plain[k])] for k in plain]
    table(["load", "plain s", "protected s", "ratio"], rows)


def print_plans(queries: dict, connection, mode) -> None:
    """Where the slowest queries (by ratio) spend their time."""
    order = sorted(
        (n for n in queries if queries[n]["seconds"][mode.name]),
        key=lambda n: -queries[n]["seconds"][mode.name] / queries[n]["seconds"]["plain"],
    )
    mode.apply(connection)
    for number in order[:PLANS]:
        print(f"\nQ{number:02}, mode {mode.name}")
        for statement in tpch_data.query(number, SCALE):
            explain = statement.lstrip().startswith(("select", "with"))
            done = run(connection, ("EXPLAIN (ANALYZE, COSTS OFF) " if explain else "") + statement)
            for row in done.rows if explain else []:
                print("  " + row[0])


def plot(report: Report, measured: dict, modes) -> None:
    labels = [f"Q{n}" for n in QUERIES]
    series = {
        f"batches {mode.name}, {workers} workers": [
            ratio(q["seconds"][mode.name], q["seconds"]["plain"]) for q in queries.values()
        ]
        for workers, queries in measured.items()
        for mode in modes
    }
    title = f"TPC-H at scale {SCALE:g}, {servers.KIND} settings: time over plaintext"
    plots.bars(report.plot(), title, labels, series, "times plaintext", goal=1, log=True)


def measure_all(workers: int, sides, modes) -> dict:
    """All queries, with so many parallel workers at most in each Gather of either side."""
    for connection in sides.values():
        connection.execute(f"SET max_parallel_workers_per_gather = {workers}")
    progress(f"workers {workers}: " + "  ".join(head(modes)))
    queries = {}
    for number in QUERIES:
        queries[number] = measure(number, sides, modes)
        progress("  ".join(map(str, map(short, line(number, queries[number], modes)))))
    if PLANS:
        print_plans(queries, sides["protected"], modes[0])
    print()
    table(head(modes), [line(n, q, modes) for n, q in queries.items()])
    return queries


def main() -> None:
    settings = {k: v for k, v in servers.SETTINGS.items() if k != WORKERS_SETTING}
    given = {"SF": SCALE, "SETTINGS": servers.KIND, "WORKERS": servers.WORKERS, "ROUNDS": ROUNDS}
    given |= {"LIMIT": LIMIT, "PRIORITY": PRIORITY, **settings}
    report = Report(f"tpch-{SCALE:g}{servers.SUFFIX}", given)
    with (
        servers.running() as stack,
        servers.connect(servers.direct_url(stack)) as plain,
        servers.connect(stack.app_url) as protected,
        stack.connect_dba() as dba,
    ):
        dba.execute("GRANT pg_monitor TO app")
        sides = {"plain": plain, "protected": protected}
        load(sides, report)
        servers.prioritize(stack, sides.values(), PRIORITY)
        modes = servers.modes(protected)
        report.content["parameters"]["MODES"] = ",".join(mode.name for mode in modes)
        for connection in sides.values():
            connection.execute(f"SET statement_timeout = '{LIMIT}s'")
        report.results["workers"] = found = {}
        plotted = {}
        for workers in servers.WORKERS:
            queries = measure_all(workers, sides, modes)
            plotted[workers] = queries
            told = {f"Q{n}": q for n, q in queries.items()}
            found[str(workers)] = {"queries": told, "summary": summary(queries, modes)}
        print_summary(report)
        print_load(report)
        storage(stack, report)
    plot(report, plotted, modes)
    report.write()


def short(value):
    return f"{value:.3f}" if isinstance(value, float) else value


if __name__ == "__main__":
    main()

"""`make bench-families`: what the families cost: bytes of a row, short statements, sums.

A table of ROWS rows (text, int4, numeric, date behind a plain key) once plain and once in each
family (`soft_` twice: with all encodings, and for equality alone). Bytes are those of the table
and of the index on its int4, divided by rows; what the keeper of `enc_` holds is not in them. The
statements are of TPC-C's kind, sent by psycopg as prepared statements by one client, SECONDS each,
the families in alternation, ROUNDS times; plain ones go straight to PostgreSQL. `round trips` are
waits for the keeper of one statement of each kind.

Then the 22 TPC-H queries at scale SF on plain tables and on those of the family `rnd_`, ROUNDS
times in alternation, one process each, with their waits for the keeper; a query ends after LIMIT
seconds. Then the switch between software and keeper (soft_switch.py). Last the microbenchmark of
crates/encodings, as it prints itself. Not measured: several clients, except with the switch;
TPC-C.

Parameters: ROWS, SECONDS, ROUNDS, SF, LIMIT, SWITCH_ROWS; ONLY=switch for that part alone.
"""

import itertools
import subprocess
import time

import servers
import soft_switch
import tpch
import tpch_data
from report import ROOT, Report, geometric_mean, median, parameter, progress, ratio, table

ROWS = parameter("ROWS", 5000)
SECONDS = parameter("SECONDS", 1.0)
ROUNDS = parameter("ROUNDS", 3)
SCALE = parameter("SF", 0.01)
LIMIT = parameter("LIMIT", 10)
ONLY = parameter("ONLY", "")
TPCH = {"plain": "tpch_plain", "rnd": "tpch_rnd"}
COLUMNS = {"name": "text", "pay": "int4", "price": "numeric(10,2)", "born": "date"}
FAMILIES = ["plain", "enc", "rnd", "soft", "soft_eq"]
# Statements, each with what its parameters are made of; those of an order need one.
STATEMENTS = {
    "insert": "INSERT INTO item VALUES (%s, %s, %s, %s, %s)",
    "by the plain key": "SELECT name, pay, price, born FROM item WHERE id = %s",
    "by a protected value": "SELECT id, name FROM item WHERE pay = %s",
    "a range": "SELECT count(*) FROM item WHERE pay BETWEEN %s AND %s",
    "update": "UPDATE item SET price = %s WHERE id = %s",
    "sum of all": "SELECT sum(price) FROM item",
}
WANT_MORE = {"soft_eq": ["a range", "sum of all"]}


def declared(family: str, type_: str) -> str:
    match family:
        case "plain":
            return type_
        case "soft_eq":
            name, _, rest = type_.partition("(")
            return f"soft_{name}({rest.removesuffix(')') + ', ' if rest else ''}eq)"
        case _:
            return f"{family}_{type_}"


def row(number: int) -> tuple:
    day = f"{1950 + number % 50}-{number % 12 + 1:02}-{number % 28 + 1:02}"
    return number, f"name {number % 1000}", number, f"{number % 9000}.50", day


def make(stack, family: str) -> float:
    """Fills the family's table; bytes of a row, with its index."""
    with servers.connect(stack.app_url) as app:
        app.execute(f"CREATE SCHEMA {family}")
        app.execute(f"SET search_path = {family}")
        columns = ", ".join(f"{c} {declared(family, t)}" for c, t in COLUMNS.items())
        app.execute(f"CREATE TABLE item (id int PRIMARY KEY, {columns})")
        with app.cursor().copy("COPY item FROM STDIN") as copy:
            for number in range(ROWS):
                copy.write_row(row(number))
        app.execute("CREATE INDEX by_pay ON item (pay)")
        app.execute("VACUUM ANALYZE item")
    with servers.connect(stack.dba_url, family) as dba:
        query = "SELECT pg_table_size('item') + pg_relation_size('by_pay')"
        return dba.execute(query).fetchone()[0] / ROWS


def arguments(statement: str, number: int) -> tuple:
    chosen = number * 7919 % ROWS
    match statement:
        case "insert":
            return row(ROWS + number)
        case "a range":
            return chosen, chosen + 20
        case "update":
            return f"{number % 9000}.25", chosen
        case "sum of all":
            return ()
    return (chosen,)


def connected(stack, family: str):
    url = servers.direct_url(stack) if family == "plain" else stack.app_url
    return servers.connect(url, family)


def per_second(stack, family: str, statement: str, numbers) -> float:
    text, done = STATEMENTS[statement], 0
    with connected(stack, family) as connection:
        connection.execute(text, arguments(statement, next(numbers)), prepare=True)
        began = time.monotonic()
        while time.monotonic() < began + SECONDS:
            connection.execute(text, arguments(statement, next(numbers)), prepare=True)
            done += 1
        return done / (time.monotonic() - began)


def round_trips(stack, family: str, statement: str, numbers) -> float:
    """Of a statement that has run before: what ten more of them add."""
    found = []
    with servers.connect(stack.dba_url) as dba:
        for times in (1, 11):
            channels = int(servers.stat_keeper(dba)["channels"])
            before = servers.answered(dba, channels)
            with connected(stack, family) as connection:
                for _ in range(times):
                    values = arguments(statement, next(numbers))
                    connection.execute(STATEMENTS[statement], values, prepare=True)
            found.append(servers.answered(dba, channels) - before)
    return (found[1] - found[0]) / 10


def measure(stack, statement: str, numbers) -> dict:
    able = [f for f in FAMILIES if statement not in WANT_MORE.get(f, [])]
    runs = {family: [] for family in able}
    for _ in range(ROUNDS):
        for family, found in runs.items():
            found.append(per_second(stack, family, statement, numbers))
    trips = {f: round_trips(stack, f, statement, numbers) for f in able if f in ("enc", "rnd")}
    entry = {family: median(found) for family, found in runs.items()}
    progress(f"{statement}: measured")
    return {"per_second": entry, "round_trips": trips, "runs": runs}


def load_tpch(name: str, connection) -> float:
    """The tables of a family; seconds."""
    began = time.monotonic()
    directory = tpch_data.generate(SCALE)
    connection.execute(f"CREATE SCHEMA {TPCH[name]}")
    connection.execute(f"SET search_path = {TPCH[name]}")
    connection.execute(tpch_data.ddl(name != "plain", f"{name}_"))
    for relation in tpch_data.TABLES:
        tpch_data.copy(connection, relation, directory)
    tpch_data.finish(connection)
    connection.execute(f"SET statement_timeout = '{LIMIT}s'")
    return time.monotonic() - began


def query_times(number: int, sides: dict) -> dict:
    """Medians of one query, and its waits for the keeper."""
    runs = {name: [] for name in sides}
    entry = {"same": True, "error": None, "waits": None}
    for _ in range(ROUNDS):
        seconds, expected, _ = tpch.execute(sides["plain"], number)
        runs["plain"].append(seconds)
        if entry["error"]:
            continue
        before = tpch.answered(sides["rnd"])
        seconds, outcomes, failed = tpch.execute(sides["rnd"], number)
        entry["waits"] = tpch.answered(sides["rnd"]) - before - 1
        if failed:
            entry["error"] = failed.sqlstate
            continue
        runs["rnd"].append(seconds)
        entry["same"] &= all(map(tpch.same, expected, outcomes))
    plain, rnd = (median(found) if found else None for found in runs.values())
    return {**entry, "plain": plain, "rnd": rnd, "ratio": ratio(rnd, plain), "runs": runs}


def measure_tpch(stack) -> dict:
    with (
        servers.connect(servers.direct_url(stack)) as plain,
        servers.connect(stack.app_url) as rnd,
        stack.connect_dba() as dba,
    ):
        dba.execute("GRANT pg_monitor TO app")
        sides = {"plain": plain, "rnd": rnd}
        load = {name: load_tpch(name, connection) for name, connection in sides.items()}
        progress(f"TPC-H is loaded: {load}")
        queries = {f"Q{n}": query_times(n, sides) for n in tpch_data.QUERIES}
        sizes = {name: tpch_data.storage(dba, schema) for name, schema in TPCH.items()}
    ratios = [q["ratio"] for q in queries.values() if q["ratio"]]
    summary = {
        "queries": len(ratios),
        "geometric_mean": geometric_mean(ratios),
        "worst": max(ratios, default=None),
    }
    return {"load": load, "queries": queries, "summary": summary, "storage": sizes}


def print_tpch(found: dict) -> None:
    keys = ["plain", "rnd", "ratio", "waits", "error"]
    rows = [[n, *(q[k] for k in keys), q["same"]] for n, q in found["queries"].items()]
    table(["", "plain s", "rnd s", "times", "waits", "error", "same rows"], rows)
    print("  " + ", ".join(f"{k} {v}" for k, v in found["summary"].items()))


def encodings() -> list[str]:
    command = ["cargo", "run", "--release", "--quiet", "-p", "encodings", "--example", "costs"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main() -> None:
    given = {"ROWS": ROWS, "SECONDS": SECONDS, "ROUNDS": ROUNDS, "SF": SCALE, "LIMIT": LIMIT}
    given |= {"SWITCH_ROWS": soft_switch.ROWS}
    given |= servers.SETTINGS
    # A part alone does not replace the results of all.
    report = Report(f"families-{ONLY}" if ONLY else "families", given)
    numbers = itertools.count()
    if ONLY == "switch":
        with servers.running() as stack:
            report.results.update(switch=soft_switch.measure(stack))
        soft_switch.show(report.results["switch"])
        report.write()
        return
    with servers.running() as stack:
        sizes = {family: make(stack, family) for family in FAMILIES}
        cells = {name: measure(stack, name, numbers) for name in STATEMENTS}
        found = measure_tpch(stack)
        switch = soft_switch.measure(stack)
    report.results.update(
        bytes=sizes, cells=cells, tpch=found, switch=switch, encodings=encodings()
    )
    print()
    of_plain = [ratio(size, sizes["plain"]) for size in sizes.values()]
    table(["", *FAMILIES], [["bytes of a row", *sizes.values()], ["times plaintext's", *of_plain]])
    print()
    rows = [[name, *(c["per_second"].get(f) for f in FAMILIES)] for name, c in cells.items()]
    table(["a second", *FAMILIES], rows)
    print()
    trips = [[name, *c["round_trips"].values()] for name, c in cells.items()]
    table(["round trips", "enc", "rnd"], trips)
    print()
    print_tpch(found)
    print()
    soft_switch.show(switch)
    print()
    for line in report.results["encodings"]:
        print(f"  {line}")
    report.write()


if __name__ == "__main__":
    main()

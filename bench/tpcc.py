"""`make bench-tpcc W=1`: TPC-C, all five transactions in the standard's mix, no keying or think
time, then the standard's consistency conditions.

Policies (POLICIES): customer (personal columns of CUSTOMER), weak (all columns but keys), strong
(all columns). Paths (PATHS): library (the client library inside the driver) and proxy. In each
round plaintext runs before each of them, in the same PostgreSQL, with as many clients.

Waits: how many answers of the keeper a transaction waited for. They do not depend on the machine.

Parameters: W warehouses, POLICIES, PATHS, CLIENTS, SECONDS of each measurement, ROUNDS.
"""

import plots
import servers
from driver import driver
from report import Report, median, parameter, parameters, progress, ratio, table

WAREHOUSES = parameter("W", 1)
POLICIES = parameters("POLICIES", "customer,weak,strong")
PATHS = parameters("PATHS", "library,proxy")
CLIENTS = [int(n) for n in parameters("CLIENTS", "1,4,16")]
SECONDS = parameter("SECONDS", 4.0)
ROUNDS = parameter("ROUNDS", 1)
SHOWN = ("path", "clients", "plain", "protected", "ratio", "waits")
TITLES = {"customer": "Customer", "weak": "Strong/Weak", "strong": "Strong/Strong"}

# Each gives a row when it is violated (clause 3.3.2).
CONDITIONS = {
    "1: w_ytd is the sum of d_ytd": """
        SELECT w_id FROM warehouse JOIN district ON d_w_id = w_id
        GROUP BY w_id, w_ytd HAVING w_ytd <> sum(d_ytd)""",
    "2: d_next_o_id follows the newest order": """
        SELECT d_w_id, d_id FROM district JOIN orders ON o_w_id = d_w_id AND o_d_id = d_id
        GROUP BY d_w_id, d_id, d_next_o_id HAVING d_next_o_id - 1 <> max(o_id)""",
    "2: new orders end with the newest order": """
        SELECT d_w_id, d_id FROM district JOIN new_order ON no_w_id = d_w_id AND no_d_id = d_id
        GROUP BY d_w_id, d_id, d_next_o_id HAVING d_next_o_id - 1 <> max(no_o_id)""",
    "3: new orders have no gap": """
        SELECT no_w_id, no_d_id FROM new_order
        GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)""",
    "4: o_ol_cnt counts the order lines": """
        SELECT * FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS told FROM orders
            GROUP BY o_w_id, o_d_id) o
        JOIN (SELECT ol_w_id, ol_d_id, count(*) AS found FROM order_line
            GROUP BY ol_w_id, ol_d_id) l ON ol_w_id = o_w_id AND ol_d_id = o_d_id
        WHERE told <> found""",
    "8: w_ytd is the sum of payments": """
        SELECT w_id FROM warehouse JOIN history ON h_w_id = w_id
        GROUP BY w_id, w_ytd HAVING w_ytd <> sum(h_amount)""",
    "9: d_ytd is the sum of payments": """
        SELECT d_w_id, d_id FROM district JOIN history ON h_w_id = d_w_id AND h_d_id = d_id
        GROUP BY d_w_id, d_id, d_ytd HAVING d_ytd <> sum(h_amount)""",
}


def load(stack, report: Report) -> None:
    report.results["load"] = found = {}
    with stack.connect_dba() as dba:
        for policy in ("plain", *POLICIES):
            dba.execute(f"CREATE SCHEMA tpcc_{policy} AUTHORIZATION app")
    for policy in ("plain", *POLICIES):
        path = "direct" if policy == "plain" else "library"
        arguments = ["tpcc-load", "--policy", policy, "--warehouses", WAREHOUSES]
        found[policy] = driver(stack, path, f"tpcc_{policy}", *arguments)
        progress(f"loaded {policy}: " + ", ".join(f"{k} {v:.1f}" for k, v in found[policy].items()))


def measure(stack, policy: str, path: str, clients: int, turn: int) -> dict:
    return driver(
        *(stack, path, f"tpcc_{policy}", "tpcc", "--warehouses", WAREHOUSES),
        *("--clients", clients, "--seconds", SECONDS, "--seed", turn * 1000 + clients),
    )


def with_waits(stack, policy: str, path: str, clients: int, turn: int) -> dict:
    """A run of the protected side, and how many answers of the keeper a transaction waited for.
    Those of opening a connection are among them: they matter to runs of a second."""
    with stack.connect_dba() as dba:
        servers.stat_keeper(dba)  # opens this connection's own channel
        channels = int(servers.stat_keeper(dba)["channels"])
        before = servers.answered(dba, channels)
        run = measure(stack, policy, path, clients, turn)
        run["waits"] = (servers.answered(dba, channels) - before) / max(1, run["done"])
    return run


def cell(stack, policy: str, path: str, clients: int) -> dict:
    """Plaintext and protected in alternation; medians of transactions per second."""
    runs = {"plain": [], "protected": []}
    for turn in range(ROUNDS):
        runs["plain"].append(measure(stack, "plain", "direct", clients, turn))
        runs["protected"].append(with_waits(stack, policy, path, clients, turn))
    entry = {"policy": policy, "path": path, "clients": clients, "runs": runs}
    for side, found in runs.items():
        entry[side] = median([run["per_second"] for run in found])
        entry[side + "_ms"] = {
            p: median([r["all"][p] for r in found]) for p in ("p50", "p95", "p99")
        }
    entry["ratio"] = ratio(entry["protected"], entry["plain"])
    entry["waits"] = median([run["waits"] for run in runs["protected"]])
    progress(
        f"{TITLES[policy]}, {path}, {clients} clients: plain {entry['plain']:.0f}/s,"
        f" protected {entry['protected']:.0f}/s, ratio {entry['ratio']:.2f},"
        f" {entry['waits']:.1f} waits a transaction"
    )
    return entry


def check(stack, report: Report) -> None:
    report.results["conditions"] = found = {}
    for policy in ("plain", *POLICIES):
        with servers.connect(stack.app_url, f"tpcc_{policy}") as app:
            violated = [n for n, sql in CONDITIONS.items() if app.execute(sql).fetchall()]
        found[policy] = violated
        told = f"violated: {violated}" if violated else f"all {len(CONDITIONS)} hold"
        progress(f"consistency conditions, {policy}: {told}")


def plot(report: Report, cells: list[dict]) -> None:
    series = {}
    for policy in POLICIES:
        for path in PATHS:
            found = [c["ratio"] for c in cells if (c["policy"], c["path"]) == (policy, path)]
            series[f"{TITLES[policy]}, {path}"] = found
    title = f"TPC-C, {WAREHOUSES} warehouses: throughput over plaintext"
    plots.lines(report.plot(), title, CLIENTS, series, "of plaintext", "clients")


def main() -> None:
    given = {"W": WAREHOUSES, "POLICIES": POLICIES, "PATHS": PATHS, "CLIENTS": CLIENTS}
    given |= {"SECONDS": SECONDS, "ROUNDS": ROUNDS, **servers.SETTINGS}
    report = Report(f"tpcc{servers.SUFFIX}", given)
    with servers.running() as stack:
        load(stack, report)
        cells = [
            cell(stack, policy, path, clients)
            for clients in CLIENTS
            for policy in POLICIES
            for path in PATHS
        ]
        report.results["cells"] = cells
        check(stack, report)
    head = ["policy", "path", "clients", "plain/s", "protected/s", "ratio", "waits"]
    head += ["plain p50 ms", "p50 ms", "plain p99 ms", "p99 ms"]
    rows = [
        [TITLES[c["policy"]], *(c[k] for k in SHOWN)]
        + [c[f"{side}_ms"][p] for p in ("p50", "p99") for side in ("plain", "protected")]
        for c in sorted(cells, key=lambda c: (POLICIES.index(c["policy"]), c["path"]))
    ]
    table(head, rows)
    plot(report, cells)
    report.write()
    if any(report.results["conditions"].values()):
        raise SystemExit("a consistency condition is violated")


if __name__ == "__main__":
    main()

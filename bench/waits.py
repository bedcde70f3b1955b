"""`make bench-waits`: what the statements of TPC-C and sysbench wait for, by statement and kind of
message.

One client of the library runs TRANSACTIONS transactions uncounted, then as many that are counted:
after each statement the session's counters are read. No clock is looked at, so a busy machine
does not matter, and one seed gives the same figures again.

Parameters: W warehouses, POLICIES (customer, weak, strong; none), TRANSACTIONS, SEED;
WORKLOADS and DISTRIBUTIONS of sysbench, ROWS.
"""

import servers
import sysbench
import tpcc
from driver import driver
from report import Report, parameter, parameters, progress, table

TRANSACTIONS = parameter("TRANSACTIONS", 230)
SEED = parameter("SEED", 1)
POLICIES = [p for p in tpcc.POLICIES if p != "none"]
WORKLOADS = parameters("WORKLOADS", "")
WIDTH = 64


def statements(found: dict) -> list[dict]:
    """Statements with the answers they waited for, the largest share first."""
    rows = [
        {**s, "total": sum(s["answers"].values()), "text": " ".join(s["sql"].split())}
        for s in found["statements"]
    ]
    return sorted(rows, key=lambda s: (-s["total"], s["text"]))


def show(title: str, found: dict) -> float:
    """Prints a table; gives the round trips of a transaction."""
    count = found["transactions"]
    rows = []
    for s in statements(found):
        kinds = sorted(s["answers"].items(), key=lambda kind: -kind[1])
        named = ", ".join(f"{kind} {n / s['calls']:.2f}" for kind, n in kinds)
        if s["total"]:
            rows.append([s["text"][:WIDTH], s["calls"], s["total"] / count, named])
    whole = sum(s["total"] for s in statements(found)) / count
    progress(f"{title}: {whole:.1f} round trips a transaction")
    table(["statement", "calls", "a transaction", "of a call"], rows)
    return whole


def of_tpcc(stack, report: Report) -> None:
    tpcc.load(stack, report)
    for policy in POLICIES:
        arguments = ["--warehouses", tpcc.WAREHOUSES, "--seed", SEED]
        arguments += ["--transactions", TRANSACTIONS]
        found = driver(stack, "library", f"tpcc_{policy}", "tpcc-waits", *arguments)
        whole = show(tpcc.TITLES[policy], found)
        report.results[policy] = {**found, "a_transaction": whole}


def of_sysbench(stack, report: Report) -> None:
    sysbench.make_tables(stack)
    for workload in WORKLOADS:
        for distribution in sysbench.DISTRIBUTIONS:
            arguments = ["--workload", workload, "--distribution", distribution]
            arguments += ["--rows", sysbench.ROWS, "--seed", SEED, "--transactions", TRANSACTIONS]
            found = driver(stack, "library", "sb_protected", "sysbench-waits", *arguments)
            whole = show(f"{workload}, {distribution}", found)
            report.results[f"{workload} {distribution}"] = {**found, "a_transaction": whole}


def main() -> None:
    given = {"W": tpcc.WAREHOUSES, "POLICIES": POLICIES, "WORKLOADS": WORKLOADS}
    given |= {"DISTRIBUTIONS": sysbench.DISTRIBUTIONS, "ROWS": sysbench.ROWS}
    given |= {"TRANSACTIONS": TRANSACTIONS, "SEED": SEED, **servers.SETTINGS}
    report = Report("waits", given)
    with servers.running() as stack:
        with stack.connect_dba() as dba:
            dba.execute("GRANT pg_monitor TO app")
        if POLICIES:
            of_tpcc(stack, report)
        if WORKLOADS:
            of_sysbench(stack, report)
    report.write()


if __name__ == "__main__":
    main()

"""`make bench-grants`: what authorised statements cost: TPC-H's queries, sysbench's transactions
and TPC-C with a keeper that asks for grants (`require_grants`) beside one that does not, and
beside plaintext.

The keeper is started anew for each turn, with the setting on and off by turns, which one first by
turns, too; the first run after a start does not count. The ratio of on to off is that of the
medians, and its spread is the quartiles of the turns' own ratios. Goal: 1.03.

Parameters: SF, QUERIES, ROUNDS, ROWS, WORKLOADS, SECONDS, W and POLICIES of TPC-C.
"""

import statistics
from types import SimpleNamespace

import ablations
import servers
import tpcc
from ablations import Cell, compare, load, restart, transactions
from report import Report, geometric_mean, median, progress, ratio, table

SETTINGS = {"on": "true", "off": "false"}


def turns(stack, plain) -> dict[str, Cell]:
    """Plaintext and both settings, in alternation."""
    cells = {"plain": Cell(), **{setting: Cell() for setting in SETTINGS}}
    for cell in cells.values():
        cell.transactions |= {f"TPC-C {policy}": [] for policy in tpcc.POLICIES}
    for turn in range(ablations.ROUNDS):
        cells["plain"].run_queries(plain)
        for workload in ablations.WORKLOADS:
            rate = transactions(stack, "direct", "plain", workload, turn)
            cells["plain"].transactions[workload].append(rate)
        rate = tpcc.measure(stack, "plain", "direct", 1, turn)["per_second"]
        for policy in tpcc.POLICIES:
            cells["plain"].transactions[f"TPC-C {policy}"].append(rate)
        for setting in sorted(SETTINGS, reverse=turn % 2 == 0):
            with restart(stack, None, require_grants=SETTINGS[setting]) as connection:
                Cell().run_queries(connection)
                cells[setting].run_queries(connection)
            for workload in ablations.WORKLOADS:
                rate = transactions(stack, "library", "protected", workload, turn)
                cells[setting].transactions[workload].append(rate)
            for policy in tpcc.POLICIES:
                rate = tpcc.measure(stack, policy, "library", 1, turn)["per_second"]
                cells[setting].transactions[f"TPC-C {policy}"].append(rate)
        progress(f"round {turn + 1}")
    return cells


def rows(cells: dict[str, dict]) -> dict[str, dict]:
    """By query and workload: times of plaintext's time, and of the time without grants."""
    found = {}
    for name, on in cells["on"]["runs"].items():
        off = cells["off"]["runs"][name]
        by_turn = zip(on, off, strict=True)
        rate = not name.startswith("Q")
        by_turn = [b / a if rate else a / b for a, b in by_turn]
        low, _, high = statistics.quantiles(by_turn, n=4)
        a, b = median(on), median(off)
        found[name] = {
            **{setting: cells[setting]["times"][name] for setting in SETTINGS},
            "on_over_off": ratio(b, a) if rate else ratio(a, b),
            "quartiles": [low, high],
        }
    return found


def main() -> None:
    given = {"SF": ablations.SCALE, "QUERIES": ",".join(map(str, ablations.QUERIES))}
    given |= {"ROUNDS": ablations.ROUNDS, "ROWS": ablations.ROWS, "SECONDS": ablations.SECONDS}
    given |= {"W": tpcc.WAREHOUSES, "POLICIES": tpcc.POLICIES}
    report = Report("grants", given | servers.SETTINGS)
    with servers.running() as stack, servers.connect(servers.direct_url(stack)) as plain:
        with servers.connect(stack.app_url) as protected:
            load(stack, {"plain": plain, "protected": protected})
        tpcc.load(stack, SimpleNamespace(results={}))
        cells = {name: cell.content() for name, cell in turns(stack, plain).items()}
    for setting in SETTINGS:
        compare(cells["plain"], cells[setting])
    found = report.results["rows"] = rows(cells)
    queries = [row["on_over_off"] for name, row in found.items() if name.startswith("Q")]
    report.results["mean_of_queries"] = geometric_mean(queries)
    head = ["times plaintext's time", "on", "off", "on / off", "quartiles"]
    table(head, [[name, *row.values()] for name, row in found.items()])
    print(f"  queries, geometric mean of on / off: {report.results['mean_of_queries']:.3f}")
    report.write()


if __name__ == "__main__":
    main()

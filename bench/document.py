"""`make bench-docs`: puts the figures of bench/results into docs/benchmarks.md, between its markers
`<!-- figures NAME -->` and `<!-- end -->`. What stands outside them is written by hand, and has
no figures. With --check: says whether the page is what the results give.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import cell_caches
from hot_paths import CASES, GRANTED
from report import ROOT, shown

PAGE = ROOT / "docs/benchmarks.md"
RESULTS = ROOT / "bench/results"
POLICIES = {"customer": "Customer", "weak": "Strong/Weak", "strong": "Strong/Strong"}


def grid(head: Sequence[str], rows: Sequence[Sequence]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    return lines + ["| " + " | ".join(map(shown, row)) + " |" for row in rows]


def origin(content: dict) -> list[str]:
    """Where the figures are from."""
    m = content["machine"]
    changed = " with changes" if content["changed_since"] else ""
    command, day = content["command"].strip(), content["date"][:10]
    parameters = ", ".join(f"{k} {v}" for k, v in content["parameters"].items())
    return [
        f"`{command}`, commit {content['commit']}{changed}, {day},"
        f" {m['cores']} × {m['cpu']}, {m['memory_gb']} GB, load before {m['load']:.1f}.",
        f"Parameters: {parameters}.",
        "",
    ]


def tpch_queries(part: dict, title: str) -> list[str]:
    """The queries' times, with so many workers."""
    modes = list(part["summary"])
    head = [title, "plain s", *(f"{m} s" for m in modes), *(f"{m} / plain" for m in modes)]
    head += [f"{m} waits" for m in modes]
    rows = []
    for name, query in part["queries"].items():
        seconds = query["seconds"]
        ratios = [seconds[m] / seconds["plain"] if seconds[m] else None for m in modes]
        waits = [query.get("waits", {}).get(m) for m in modes]
        mark = "" if query["same"] and not query["errors"] else " (differs)"
        rows.append([name + mark, seconds["plain"], *(seconds[m] for m in modes), *ratios, *waits])
    names = ["queries", "plain_total", "total", "geometric_mean", "worst"]
    summary = [[f"batches {m}", *(t[n] for n in names)] for m, t in part["summary"].items()]
    shorter = ["", "queries", "plaintext s", "protected s", "geometric mean of ratios", "worst"]
    return [*grid(head, rows), "", *grid(shorter, summary), ""]


def tpch(results: dict) -> list[str]:
    lines = []
    # Results from before there were several numbers of workers have one.
    for workers, part in results.get("workers", {"0": results}).items():
        lines += tpch_queries(part, f"{workers} workers")
    plain, protected = results["load"]["plain"], results["load"]["protected"]
    rows = [
        [k, plain[k], protected[k], protected[k] / plain[k]]
        for k in ("lineitem", "constraints", "vacuum", "analyze")
    ]
    lines += [*grid(["load", "plain s", "protected s", "ratio"], rows)]
    storage = results["storage"]
    parts = ["tables", "indexes", "keeper", "total"]
    rows = [
        [side, *(storage[side].get(p, 0) / 1e6 for p in parts), storage[side]["bytes_per_row"]]
        for side in ("plain", "protected")
    ]
    lines += ["", *grid(["storage, MB", *parts, "bytes a row"], rows)]
    memory = storage["protected"]["keeper_memory"] / 1e6
    lines += ["", f"Total of both sides: {storage['ratio']:.2f} times plaintext."]
    return [*lines, f"Resident memory of the keeper: {memory:.0f} MB."]


def durability(results: dict) -> list[str]:
    storage = results["storage"]
    parts = ["tables", "indexes", "keeper", "total", "wal"]
    rows = [
        [
            side,
            *(storage[side].get(p, 0) / 1e6 for p in parts),
            *(storage[side][k] for k in ("bytes_per_row", "wal_bytes_per_row")),
        ]
        for side in ("plain", "protected")
    ]
    space = grid(["TPC-H, MB", *parts, "bytes a row", "WAL bytes a row"], rows)
    space += ["", f"Total of both sides: {storage['ratio']:.2f} times plaintext.", ""]
    keys = ["kind", "synchronous_commit", "clients", "plain", "protected", "ratio"]
    head = ["commits a second", *keys[1:]]
    lines = grid(head, [[entry[k] for k in keys] for entry in results["commits"]])
    copy, sides = results["copy"], ("plain", "protected")
    wal = copy["wal_bytes_per_row"]
    rows = [
        ["seconds", *(copy[s] for s in sides), copy["ratio"]],
        ["WAL bytes a row", *(wal[s] for s in sides), wal["protected"] / wal["plain"]],
    ]
    lines += ["", *grid(["COPY of lineitem", *sides, "ratio"], rows)]
    found = results["recovery"]
    names = {
        "wal_mb": "MB of WAL",
        "postgres_redo_seconds": "PostgreSQL's redo, s",
        "up_seconds": "all processes up, s",
        "first_answer_seconds": "first answer, s",
    }
    rows = [[name, *(found[s][k] for s in sides)] for k, name in names.items()]
    return [*space, *lines, "", *grid(["recovery after kill -9 of all", *sides], rows)]


def tpcc(results: dict) -> list[str]:
    head = ["policy", "path", "clients", "plain/s", "protected/s", "ratio", "waits"]
    head += ["plain p50 ms", "p50 ms", "plain p99 ms", "p99 ms"]
    rows = [
        [
            *(POLICIES[c["policy"]], c["path"], c["clients"], c["plain"], c["protected"]),
            *(c["ratio"], c.get("waits"), c["plain_ms"]["p50"], c["protected_ms"]["p50"]),
            *(c["plain_ms"]["p99"], c["protected_ms"]["p99"]),
        ]
        for c in sorted(
            results["cells"], key=lambda c: (list(POLICIES).index(c["policy"]), c["path"])
        )
    ]
    violated = {k: v for k, v in results["conditions"].items() if v}
    told = f"Violated: {violated}." if violated else "All consistency conditions hold afterwards."
    return [*grid(head, rows), "", told]


def sysbench(results: dict) -> list[str]:
    keys = ["workload", "distribution", "path", "clients", "plain", "protected", "ratio"]
    keys += ["plain_p99", "protected_p99"]
    head = [*keys[:4], "plain/s", "protected/s", "ratio", "plain p99 ms", "p99 ms"]
    lines = grid(head, [[cell[k] for k in keys] for cell in results["cells"]])
    means = ", ".join(f"{path} {shown(m)}" for path, m in results["geometric_mean"].items())
    return [*lines, "", f"Geometric mean of the ratios: {means}."]


def pgbench(results: dict) -> list[str]:
    paths = list(results["cells"][0]["per_second"])
    head = ["workload", "clients", *(f"{p}/s" for p in paths)]
    beside = [p for p in paths if p.startswith("proxy")]
    head += [f"{p} / pgbouncer" for p in beside]
    rows = [
        [c["workload"], c["clients"], *c["per_second"].values(), *(c["ratio"][p] for p in beside)]
        for c in results["cells"]
    ]
    return grid(head, rows)


def keys(results: dict) -> list[str]:
    head = ["seconds, or a second", "plain", "protected", "times plaintext's time"]
    rows = [[n, c["plain"], c["protected"], c["times"]] for n, c in results["cells"].items()]
    return grid(head, rows)


def ablations(results: dict) -> list[str]:
    plain = results["plain"]
    queries, workloads = list(plain["seconds"]), list(plain["per_second"])
    rows = [[*plain["seconds"].values(), *plain["per_second"].values()]]
    lines = grid(
        ["plaintext", *(f"{q} s" for q in queries), *(f"{w}/s" for w in workloads)],
        [["", *rows[0]]],
    )
    names = [*queries, *workloads]
    head = ["times plaintext's time", "mean of Q", *names]
    rows = [
        [name, c["mean"], *(c["times"][n] for n in names)]
        for name, c in results["switches"].items()
    ]
    lines += ["", *grid(head, rows)]
    if "ahead" in results:
        counters = {"faults": "read while waiting", "read_ahead": "ahead", "used_of_it": "used"}
        rows = [
            [switch, *c["seconds"].values(), *(c[k] for k in counters)]
            for switch, c in results["ahead"].items()
        ]
        head_ahead = ["cold, read-ahead", *(f"{q} s" for q in queries), *counters.values()]
        lines += ["", *grid(head_ahead, rows)]
    if "caches" in results:
        lines += ["", *grid(*cell_caches.grid(results["caches"]))]
    if "memory" in results:
        lines += ["", *memory(results["memory"], head, names)]
    return lines


def grants(results: dict) -> list[str]:
    if "processor" not in results:
        return grants_by_wall(results)
    lines = []
    for clock in ("processor", "wall"):
        found = results[clock]
        rows = [[name, r["off_ms"], *ratios(r)] for name, r in found["rows"].items()]
        rows += [
            [f"{name}, geometric mean", None, *ratios(mean)]
            for name, mean in found["means"].items()
        ]
        head = [f"{clock} time", "off ms", "on / off", "first quartile", "third", "off / off"]
        lines += ["", *grid(head, rows)]
    return lines[1:]


def ratios(found: dict) -> list[str]:
    """With the digits that the goal has and one more."""
    on, control = found["on"], found["control"]
    return [f"{r:.3f}" for r in (on["ratio"], *on["quartiles"], control["ratio"])]


def grants_by_wall(results: dict) -> list[str]:
    """Of runs before processor time was measured."""
    head = ["times plaintext's time", "on", "off", "on / off", "first quartile", "third"]
    rows = [
        [name, row["on"], row["off"], row["on_over_off"], *row["quartiles"]]
        for name, row in results["rows"].items()
    ]
    mean = f"{results['mean_of_queries']:.3f}"
    return [*grid(head, rows), "", f"Queries, geometric mean of on / off: {mean}."]


def memory(results: dict, head: list[str], names: list[str]) -> list[str]:
    counters = {"faults": "segments read", "read_ahead": "ahead", "evictions": "evicted"}
    sizes = {"limit_mb": "limit MB", "peak_mb": "peak MB"}
    rows = [
        [
            *(f"{share} %", c["mean"], *(c["times"][n] for n in names)),
            *(c[k] for k in counters),
            *(c.get(k) for k in sizes),
        ]
        for share, c in results["shares"].items()
        if "times" in c
    ]
    lines = grid(["memory", *head[1:], *counters.values(), *sizes.values()], rows)
    failed = [f"{s} %: {c['failed']}." for s, c in results["shares"].items() if "failed" in c]
    mb = results["values_mb"]
    told = (
        f"Values in memory: {mb:.0f} MB. Limit on the keeper's memory: cgroup {results['cgroup']}."
    )
    return [*lines, "", " ".join([told, *failed])]


def spent_ratios(spent: dict) -> str:
    """Ratios of processor time with a recording to that without one."""
    names = {"statements": "statements", "all": "with the writer"}
    told = [
        f"{name} {shown(spent[key]['ratio'])} ({' to '.join(map(shown, spent[key]['quartiles']))})"
        for key, name in names.items()
        if key in spent
    ]
    return f" Ratio of neighbours, and quartiles: {', '.join(told)}." if told else ""


def recording(results: dict) -> list[str]:
    found = results["tpch"]
    rows = [
        [name, q["off"], q["on"], q["ratio"], q["waits"]["off"], q["waits"]["on"]]
        for name, q in found["queries"].items()
    ]
    head = ["TPC-H", "off s", "on s", "on / off", "off waits", "on waits"]
    size = found["recording"]
    lines = [
        *grid(head, rows),
        "",
        f"Geometric mean of the ratios {shown(found['geometric_mean'])}, totals"
        f" {shown(found['totals']['on'])} s beside {shown(found['totals']['off'])} s."
        f" A pass has {size['statements']} statements and {size['events']} messages,"
        f" {size['bytes']} bytes on disk: {size['bytes_per_statement']:.0f} a statement."
        f" Lost: {size['lost']}.",
        "",
    ]
    if "pass_ratio" in found:
        spent = found["processor"]
        lines[-1:] = [
            f"Ratio of a pass to its neighbour: {shown(found['pass_ratio'])}, quartiles"
            f" {' to '.join(shown(q) for q in found['pass_quartiles'])}. Processor time of a pass:"
            f" statements {shown(spent['off']['statements'])} ms without,"
            f" {shown(spent['on']['statements'])} ms with a recording, writer"
            f" {shown(spent['on']['writer'])} ms.{spent_ratios(spent)}",
            "",
        ]
    head = ["TPC-C", "off/s", "on/s", "on / off", "off waits", "on waits", "bytes a transaction"]
    quartiles = any("quartiles" in c for c in results["tpcc"].values())
    head[4:4] = ["quartiles"] if quartiles else []
    rows = [
        [
            *(POLICIES[policy], c["off"], c["on"], c["ratio"]),
            *([" to ".join(shown(q) for q in c["quartiles"])] if quartiles else []),
            *(c["waits"]["off"], c["waits"]["on"], c["recording"]["bytes_per_transaction"]),
        ]
        for policy, c in results["tpcc"].items()
    ]
    lines += [*grid(head, rows), ""]
    for policy, c in results["tpcc"].items():
        told = spent_ratios(c.get("processor", {}))
        lines += [f"Processor time of a transaction, {POLICIES[policy]}.{told}", ""] if told else []
    found = results["replay"]
    rows = [
        [name, q["original"], q["replay"], q["replay"] / q["original"]]
        for name, q in found["queries"].items()
    ]
    lines += [*grid(["replay", "recorded s", "replayed s", "replayed / recorded"], rows), ""]
    refused = ", ".join(found["refused"]) or "none"
    lines += [
        f"Geometric mean of the ratios {shown(found['geometric_mean'])}; refused: {refused}."
        f" The clone was there after {found['clone_seconds']:.1f} s.",
        "",
    ]
    head = [
        "calls anonymised a second",
        "as it is done",
        "plainly",
        "times",
        "taken from earlier ones",
    ]
    rows = [
        [kind, c["per_second"], c["plain_per_second"], c["ratio"], c["cached"]]
        for kind, c in results["anonymised"].items()
    ]
    return [*lines, *grid(head, rows)]


def ledger(results: dict) -> list[str]:
    cells, tpcc = results["cells"], results["tpcc"]
    kinds = [kind for kind in tpcc if kind not in ("of", "runs", "processor", "checkpoint")]
    below = "plain by client" if "plain by client" in kinds else "plain"
    ratios = [("plain ledger", below), ("protected", "plain"), ("protected ledger", "protected")]
    head = [*kinds, *(f"{above} / {below}" for above, below in ratios)]

    def line(name: str, cell: dict, faster: bool = False) -> list:
        values = [cell.get(kind, "-") for kind in kinds]
        both = [(cell.get(above), cell.get(below)) for above, below in ratios]
        both = [(b, a) if faster else (a, b) for a, b in both]
        return [name, *values, *(a / b if a and b else "-" for a, b in both)]

    times = [line(name, cell) for name, cell in cells.items()]
    spent = [line(name, cell["processor"]) for name, cell in cells.items() if "processor" in cell]
    whole = [line("per second", tpcc)]
    if "processor" in tpcc:
        whole.append(line("processor ms (ratio: inverse)", tpcc["processor"], faster=True))
    if "checkpoint" in tpcc:
        kept = [tpcc["checkpoint"][kind] for kind in kinds]
        whole.append(["of the checkpoint after them", *kept, *["-"] * len(ratios)])
    waits = [[name, *(cell[kind] for kind in kinds)] for name, cell in results["waits"].items()]
    logs = [[int(size), *cell.values()] for size, cell in results["logs"].items()]
    columns = list(next(iter(results["logs"].values())))
    proofs = [list(proof.values()) for proof in results["proofs"]]
    return [
        *grid(["microseconds", *head], times),
        "",
        *([*grid(["microseconds of processors", *head], spent), ""] if spent else []),
        *grid(["round trips of a statement", *kinds], waits),
        "",
        *grid(["TPC-C, 4 clients", *head], whole),
        "",
        *grid(["versions", *columns], logs),
        "",
        *grid(list(results["proofs"][0]), proofs),
    ]


def instructions(results: dict) -> list[str]:
    counts = {name: entry["instructions"] for name, entry in results["cases"].items()}
    lines = [*grid(["path", "instructions"], [list(row) for row in counts.items()]), ""]
    granted = [
        [name, counts[name], counts[asked]]
        for case, (name, *_) in CASES.items()
        if name in counts and (asked := f"{case}{GRANTED}") in counts
    ]
    rows = [[*row, row[2] / row[1]] for row in granted]
    head = ["require_grants: the same operation", "off", "on", "on / off"]
    return [*lines, *grid(head, rows)]


def families(results: dict) -> list[str]:
    names = list(results["bytes"])
    plain = results["bytes"]["plain"]
    sizes = list(results["bytes"].values())
    rows = [["bytes of a row", *sizes], ["times plaintext's", *(s / plain for s in sizes)]]
    lines = [*grid(["", *names], rows), ""]
    cells = results["cells"].items()
    rows = [[name, *(c["per_second"].get(f) for f in names)] for name, c in cells]
    lines += [*grid(["a second", *names], rows), ""]
    asked = ["enc", "rnd"]
    rows = [[name, *(c["round_trips"].get(f) for f in asked)] for name, c in cells]
    lines += [*grid(["round trips of a statement", *asked], rows), ""]
    queries, summary = results["tpch"]["queries"], results["tpch"]["summary"]
    keys = ["plain", "rnd", "ratio", "waits"]
    told = {False: " (differs)", True: ""}
    rows = [
        [n + told[q["same"]] + (f" ({q['error']})" if q["error"] else ""), *(q[k] for k in keys)]
        for n, q in queries.items()
    ]
    lines += [*grid(["TPC-H", "plain s", "rnd s", "rnd / plain", "rnd waits"], rows), ""]
    mean, worst = shown(summary["geometric_mean"]), shown(summary["worst"])
    lines += [f"{summary['queries']} queries: geometric mean {mean}, worst {worst}.", ""]
    return [*lines, "```", *results["encodings"], "```"]


RENDER: dict[str, Callable[[dict], list[str]]] = {
    "tpch": tpch,
    "durability": durability,
    "tpcc": tpcc,
    "sysbench": sysbench,
    "pgbench": pgbench,
    "keys": keys,
    "ablations": ablations,
    "grants": grants,
    "families": families,
    "ledger": ledger,
    "recording": recording,
    "instructions": instructions,
}


def figures(name: str) -> list[str]:
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return ["Not measured yet."]
    content = json.loads(path.read_text())
    lines = origin(content) + RENDER[name.split("-")[0]](content["results"])
    if (ROOT / f"docs/plots/{name}.png").exists():
        lines += ["", f"![{name}](plots/{name}.png)"]
    return lines


def filled(page: str) -> str:
    out, skipping = [], False
    for line in page.splitlines():
        if line == "<!-- end -->":
            skipping = False
        if not skipping:
            out.append(line)
        if line.startswith("<!-- figures "):
            out += figures(line.removeprefix("<!-- figures ").removesuffix(" -->"))
            skipping = True
    return "\n".join(out) + "\n"


def main() -> None:
    page = PAGE.read_text()
    made = filled(page)
    if "--check" in sys.argv:
        if page != made:
            raise SystemExit("docs/benchmarks.md is stale: make bench-docs")
        return
    Path(PAGE).write_text(made)


if __name__ == "__main__":
    main()

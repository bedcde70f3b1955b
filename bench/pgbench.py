"""`make bench-pgbench`: pgbench's own transactions, prepared, through the proxy beside PgBouncer.

Paths: `straight` (plain tables, no process between), `pgbouncer` (plain tables, PgBouncer in
session mode), `proxy-plain` (the same plain tables, our proxy, a database with Confide), `proxy`
(balances protected). PgBouncer and the proxy both listen on TCP and reach the server by its Unix
socket. PgBouncer has one thread. All paths of a cell run in alternation.

Parameters: SCALE of pgbench, WORKLOADS (select, tpcb), CLIENTS, SECONDS of each measurement,
ROUNDS, MODE (prepared, simple, extended), SETTINGS (servers.py).
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import plots
import psycopg
import servers
from report import Report, median, parameter, parameters, progress, ratio, table
from stack import PG_BIN, as_user, free_port

SCALE = parameter("SCALE", 1)
CLIENTS = [int(n) for n in parameters("CLIENTS", "1,8")]
SECONDS = parameter("SECONDS", 3)
ROUNDS = parameter("ROUNDS", 3)
MODE = parameter("MODE", "prepared")
SCRIPTS = {"select": "select-only", "tpcb": "tpcb-like"}
WORKLOADS = parameters("WORKLOADS", ",".join(SCRIPTS))
PATHS = ("straight", "pgbouncer", "proxy-plain", "proxy")
DATABASES = {"plain": "bench_plain", "protected": "bench_protected"}
DDL = """
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance {int}, filler char(88));
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance {int}, filler char(84));
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance {int}, filler char(84));
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta {int}, mtime timestamp,
                              filler char(22));
"""


def password(stack) -> str:
    return stack.app_url.split(":")[2].rpartition("@")[0]


def load(stack) -> None:
    with stack.connect_dba() as dba:
        for database in DATABASES.values():
            dba.execute(f"CREATE DATABASE {database} OWNER app")
    for side, database in DATABASES.items():
        with psycopg.connect(stack.dba_url, dbname=database, autocommit=True) as dba:
            dba.execute("CREATE EXTENSION confide")
        url = re.sub("/app$", f"/{database}", stack.app_url)
        with servers.connect(url) as app:
            app.execute(DDL.format(int="enc_int4" if side == "protected" else "int"))
            rows = {"branches": SCALE, "tellers": 10 * SCALE, "accounts": 100_000 * SCALE}
            for name, count in rows.items():
                with app.cursor().copy(f"COPY pgbench_{name} FROM STDIN") as copy:
                    for n in range(1, count + 1):
                        branch = (n - 1) * SCALE // count + 1
                        copy.write_row([n, *([] if name == "branches" else [branch]), 0, ""])
            app.execute("VACUUM ANALYZE pgbench_branches, pgbench_tellers, pgbench_accounts")


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def pgbouncer(stack):
    """PgBouncer beside the stack; gives its port."""
    folder = Path(tempfile.mkdtemp(prefix="bench-pgbouncer-"))
    port = free_port()
    sockets = stack.dba_url.partition("@")[2].partition(":")[0].replace("%2F", "/")
    server = f"host={sockets} port={stack.environment['CONFIDE_PGPORT']}"
    (folder / "users").write_text(f'"app" "{password(stack)}"\n')
    (folder / "ini").write_text(
        f"""[databases]
{DATABASES["plain"]} = {server} dbname={DATABASES["plain"]}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = session
default_pool_size = 90
logfile = {folder}/log
"""
    )
    if os.geteuid() == 0:
        for path in (folder, *folder.iterdir()):
            shutil.chown(path, "postgres")
    process = subprocess.Popen(
        as_user("postgres", ["/usr/sbin/pgbouncer", "-q", str(folder / "ini")]),
        stdin=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 20
        while not listens(port):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PgBouncer does not start: {folder}/log")
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def pgbench(stack, port: str, database: str, workload: str, clients: int) -> float:
    """Transactions a second."""
    done = subprocess.run(
        [
            *(PG_BIN / "pgbench", "-n", "-M", MODE, "-b", SCRIPTS[workload], "-s", str(SCALE)),
            *("-c", str(clients), "-j", str(min(clients, 2)), "-T", str(SECONDS)),
            *("-h", "127.0.0.1", "-p", port, "-U", "app", database),
        ],
        env={**os.environ, "PGPASSWORD": password(stack)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    found = re.search(r"tps = ([\d.]+) \(without", done.stdout)
    if done.returncode != 0 or found is None:
        raise RuntimeError(f"pgbench {workload}: {done.stderr.strip()[-300:]}")
    return float(found[1])


def cell(stack, ports: dict, workload: str, clients: int) -> dict:
    runs = {path: [] for path in PATHS}
    for _ in range(ROUNDS):
        for path in PATHS:
            database = DATABASES["protected" if path == "proxy" else "plain"]
            runs[path].append(pgbench(stack, str(ports[path]), database, workload, clients))
    entry = {"workload": workload, "clients": clients, "runs": runs}
    entry["per_second"] = {path: median(values) for path, values in runs.items()}
    beside = entry["per_second"]["pgbouncer"]
    entry["ratio"] = {path: ratio(entry["per_second"][path], beside) for path in PATHS}
    told = ", ".join(f"{path} {value:.0f}/s" for path, value in entry["per_second"].items())
    progress(f"{workload}, {clients} clients: {told}")
    return entry


def main() -> None:
    given = {"SCALE": SCALE, "CLIENTS": CLIENTS, "SECONDS": SECONDS, "ROUNDS": ROUNDS}
    report = Report(f"pgbench{servers.SUFFIX}", given | {"MODE": MODE, **servers.SETTINGS})
    # PgBouncer keeps its connections while the other paths run.
    with servers.running(max_connections=4 * max(CLIENTS) + 20) as stack:
        load(stack)
        with pgbouncer(stack) as port:
            proxy = stack.environment["CONFIDE_APP_PORT"]
            straight = stack.environment["CONFIDE_PGPORT"]
            ports = dict(zip(PATHS, (straight, port, proxy, proxy), strict=True))
            cells = [cell(stack, ports, w, c) for w in WORKLOADS for c in CLIENTS]
    report.results["cells"] = cells
    head = ["workload", "clients", *(f"{p}/s" for p in PATHS)]
    head += [f"{p} / pgbouncer" for p in PATHS[2:]]
    rows = [
        [
            c["workload"],
            c["clients"],
            *c["per_second"].values(),
            *(c["ratio"][p] for p in PATHS[2:]),
        ]
        for c in cells
    ]
    table(head, rows)
    labels = [f"{c['workload']}, {c['clients']}" for c in cells]
    series = {p: [c["ratio"][p] for c in cells] for p in PATHS if p != "pgbouncer"}
    plots.bars(report.plot(), "pgbench beside PgBouncer", labels, series, "of PgBouncer", goal=1)
    report.write()


if __name__ == "__main__":
    main()

"""The part of `make bench-families` about the switch of the family `soft_` (`confide.soft_mode`).

A table of SWITCH_ROWS rows with an encoded int4, whose key the keeper has; two queries that scan
it: one with one comparison, where the encodings are cheaper, and one with WIDE comparisons of one
column, where opening a cell once may pay. In each mode, by 1 and by 4 clients, SECONDS each,
ROUNDS times in alternation; once as it is, and once with the keeper throttled: it is stopped
(SIGSTOP) for PAUSE of every PERIOD seconds. `adaptive / best` is the adaptive mode's rate by the
better one of `software` and `keeper`.

Not here: other parts of bench-families.
"""

import os
import signal
import subprocess
import threading
import time
from contextlib import contextmanager

import servers
from report import median, parameter, progress, ratio, table
from stack import PG_BIN

ROWS = parameter("SWITCH_ROWS", 20000)
SECONDS = parameter("SECONDS", 1.0)
ROUNDS = parameter("ROUNDS", 3)
WIDE = 32
PERIOD, PAUSE = 0.02, 0.016
MODES = ["software", "keeper", "static", "adaptive"]
CLIENTS = [1, 4]
QUERIES = {
    "1 comparison": "SELECT count(*) FROM item WHERE n > 900",
    f"{WIDE} comparisons": "SELECT count(*) FROM item WHERE "
    + " OR ".join(f"n > {5000 + k}" for k in range(WIDE)),
}


def fill(stack) -> None:
    with servers.connect(stack.app_url) as app:
        app.execute("CREATE SCHEMA switched")
        app.execute("CREATE TABLE switched.item (id int PRIMARY KEY, n soft_int4(eq, ord))")
        with app.cursor().copy("COPY switched.item FROM STDIN") as copy:
            for number in range(ROWS):
                copy.write_row((number, number * 31 % 1000))
        app.execute("VACUUM ANALYZE switched.item")
    program = stack.data.parent / "bin" / "confide"
    command = [program, "transfer-key", "switched.item.n", "--bindir", PG_BIN]
    subprocess.run([*command, "--dbname", stack.app_url], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def throttled(stack, wanted: bool):
    """The keeper runs for a part of the time only."""
    over = threading.Event()
    pid = stack.keeper_pid()

    def stop_and_go():
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            time.sleep(PAUSE)
            os.kill(pid, signal.SIGCONT)
            time.sleep(PERIOD - PAUSE)

    thread = threading.Thread(target=stop_and_go)
    if wanted:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if wanted:
            thread.join()


def client(stack, mode: str, query: str, ready, found: list) -> None:
    with servers.connect(stack.app_url, "switched") as app:
        app.execute(f"SET confide.soft_mode = {mode}")
        app.execute(query)
        done = 0
        ready.wait()
        began = time.monotonic()
        while time.monotonic() < began + SECONDS:
            app.execute(query)
            done += 1
        found.append(done / (time.monotonic() - began))


def per_second(stack, mode: str, query: str, clients: int) -> float:
    found: list[float] = []
    ready = threading.Barrier(clients)
    arguments = (stack, mode, query, ready, found)
    threads = [threading.Thread(target=client, args=arguments) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == clients, "a client has failed"
    return sum(found)


def measure(stack) -> dict:
    fill(stack)
    results = {}
    for slow in (False, True):
        for name, query in QUERIES.items():
            for clients in CLIENTS:
                runs = {mode: [] for mode in MODES}
                with throttled(stack, slow):
                    for _ in range(ROUNDS):
                        for mode, rates in runs.items():
                            rates.append(per_second(stack, mode, query, clients))
                rates = {mode: median(found) for mode, found in runs.items()}
                best = max(rates["software"], rates["keeper"])
                case = f"{name}, {clients} client{'s' * (clients > 1)}{', throttled' * slow}"
                results[case] = {
                    "per_second": rates,
                    "adaptive_by_best": ratio(rates["adaptive"], best),
                    "runs": runs,
                }
                progress(f"{case}: measured")
    return results


def show(results: dict) -> None:
    rows = [[case, *r["per_second"].values(), r["adaptive_by_best"]] for case, r in results.items()]
    table(["a second", *MODES, "adaptive / best"], rows)

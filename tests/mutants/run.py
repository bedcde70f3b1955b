"""Takes out one defence after the other and demands that its test fails.

A mutant is a search and a replacement in one file (defences/*.toml), and the test that must
notice. Everything happens in private copies below .run/mutants (workshop.py), one for each
processor, at most two: one takes mutants from the front of the list, the other from its end.
First each test must pass in a clean copy, once; then each mutant must build, and its test must
fail by itself: an error in building, or in what a test needs, counts for nothing.

A text that is not found exactly once is an error, before anything is run. A run that was ended
early goes on with --go-on, if no file that matters has changed since.

    run.py [--only WORD]... [--missing] [--check] [--list] [--trust-clean] [--go-on] [--publish]
"""

import argparse
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from lists import Mutant, in_order, read_lists, wrong
from report import State, publish, published
from workshop import CLEAN_SECONDS, ROOT, Broken, Workshop, end_all


class Progress:
    """Numbers the lines of one round and says how long the rest takes."""

    def __init__(self, total: int):
        self.total, self.done, self.began = total, 0, time.monotonic()

    def line(self, verdict: str, seconds: float, what: str) -> None:
        self.done += 1
        left = (time.monotonic() - self.began) / self.done * (self.total - self.done) / 60
        place = f"{self.done}/{self.total}, {left:.0f} min left"
        print(f"{verdict:8} {seconds:5.0f} s  [{place}]  {what}", flush=True)


def everywhere(shops: list[Workshop], things: list, work: Callable) -> None:
    """Does the work for each thing: the first copy from the front, the second from the end, so that
    neighbours are built by one."""
    queue, errors = deque(things), []

    def go(shop: Workshop, take: Callable) -> None:
        try:
            while not errors:
                try:
                    thing = take()
                except IndexError:
                    return
                work(shop, thing)
        except BaseException as error:
            errors.append(error)

    takes = (queue.popleft, queue.pop)
    threads = [
        threading.Thread(target=go, args=(shop, take), daemon=True)
        for shop, take in zip(shops, takes, strict=False)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def open_shops(mutants: list[Mutant]) -> list[Workshop]:
    """The first build is made once."""
    first = Workshop(1)
    if os.cpu_count() == 1 or len(mutants) == 1:
        return [first]
    second = Workshop(2)
    if not second.built:
        targets = dict.fromkeys(m.test.split(" -- ")[0] if m.cargo else "pytest" for m in mutants)
        print(f"first build: {len(targets)} targets", flush=True)
        for target in targets:
            first.build_for(target)
        second.take_build_of(first)
    return [first, second]


def all_pass(shops: list[Workshop], tests: list[str], state: State) -> bool:
    """Each test must pass without any mutant."""
    progress, failed = Progress(len(tests)), []

    def work(shop: Workshop, test: str) -> None:
        try:
            seconds = shop.clean(test, CLEAN_SECONDS)
        except Broken as error:
            failed.append(test)
            progress.line("BROKEN", 0, f"{test}: {error}")
            return
        state.passed(test, seconds)
        progress.line("passes", seconds, test)

    everywhere(shops, tests, work)
    return not failed


def take_out(
    shops: list[Workshop], mutants: list[Mutant], state: State, publishing: bool
) -> list[Mutant]:
    """Those that were not noticed."""
    progress, bad, lock = Progress(len(mutants)), [], threading.Lock()

    def work(shop: Workshop, m: Mutant) -> None:
        began = time.monotonic()
        verdict, said = shop.examine(m, state.clean.get(m.test, 0))
        if verdict == "noticed":
            state.notices(m)
        with lock:
            if verdict != "noticed":
                bad.append(m)
            if publishing:  # as it comes: a run that is ended early has shown something
                publish([(m, verdict)])
            progress.line(verdict, time.monotonic() - began, f"{m.defence}: {said}")

    everywhere(shops, mutants, work)
    return bad


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[], help="a word of list, file, test")
    parser.add_argument("--check", action="store_true", help="only whether all texts are found")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--trust-clean", action="store_true", help="tests pass without mutants")
    parser.add_argument("--missing", action="store_true", help="those without a row in the table")
    parser.add_argument("--go-on", action="store_true", help="those not yet noticed in this tree")
    parser.add_argument("--publish", action="store_true", help="the table into docs/reliability.md")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    rows = published()

    def wanted(m: Mutant) -> bool:
        text = f"{m.list} {m.defence} {m.file} {m.test}"
        shown_before = options.missing and "**" not in rows.get(m.defence, "**")
        return all(word in text for word in options.only) and not shown_before

    mutants = in_order([m for m in read_lists() if wanted(m)])
    if found := wrong(mutants, ROOT):
        print("not as it must be:", *found, sep="\n  ")
        return 1
    if options.list or options.check:
        for m in mutants if options.list else []:
            print(f"{m.list:12} {m.defence}  [{m.test}]")
        return 0

    state = State(options.go_on)
    before = [m for m in mutants if m.key in state.noticed]
    if options.publish and before:
        publish([(m, "noticed") for m in before])
    rest = [m for m in mutants if m not in before]
    if rest:
        shops = open_shops(rest)
        tests = list(dict.fromkeys(m.test for m in rest if m.test not in state.clean))
        if not options.trust_clean:
            if not all_pass(shops, tests, state):
                return 1
            print("all tests pass without mutants", flush=True)
    bad = take_out(shops, rest, state, options.publish) if rest else []
    print(f"{len(mutants) - len(bad)} of {len(mutants)} noticed")
    for m in bad:
        print(f"  not noticed: {m.defence}")
    return 1 if bad else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        end_all()

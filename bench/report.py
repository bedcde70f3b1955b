"""What every benchmark does with its figures: says what runs before it runs, keeps the figures as
JSON, prints them as a table.

A run writes below `.run/results`; with PUBLISH=1 it writes what the documentation shows:
`bench/results/NAME.json` and `docs/plots/NAME.png`. Figures get into docs/benchmarks.md by
`make bench-docs` only, never by hand.
"""

import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PUBLISH = os.environ.get("PUBLISH", "") not in ("", "0")
RESULTS = ROOT / ("bench/results" if PUBLISH else ".run/results")
PLOTS = ROOT / ("docs/plots" if PUBLISH else ".run/results")


def parameter(name: str, default, convert=None):
    """A parameter of the run: from the environment, `make bench-x NAME=value`."""
    given = os.environ.get(name)
    return default if given in (None, "") else (convert or type(default))(given)


def parameters(name: str, default: str) -> list[str]:
    return [item for item in parameter(name, default).split(",") if item]


def git(*args: str) -> str:
    return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def machine() -> dict:
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**30, 1),
        "kernel": platform.release(),
        "load": os.getloadavg()[0],
    }


class Report:
    """One run of one benchmark."""

    def __init__(self, name: str, parameters: dict):
        self.name = name
        self.began = time.monotonic()
        self.content = {
            "benchmark": name,
            "commit": git("rev-parse", "--short=12", "HEAD"),
            "changed_since": bool(git("status", "--porcelain", "--untracked-files=no")),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "command": command(),
            "machine": machine(),
            "parameters": parameters,
            "results": {},
        }
        changed = " with changes" if self.content["changed_since"] else ""
        print(f"bench-{name}: commit {self.content['commit']}{changed}, {self.content['date']}")
        m = self.content["machine"]
        print(f"  {m['cores']} x {m['cpu']}, {m['memory_gb']} GB, load {m['load']:.1f}")
        print("  " + ", ".join(f"{key}={value}" for key, value in parameters.items()), flush=True)

    @property
    def results(self) -> dict:
        return self.content["results"]

    def write(self) -> None:
        self.content["seconds"] = round(time.monotonic() - self.began, 1)
        RESULTS.mkdir(parents=True, exist_ok=True)
        path = RESULTS / f"{self.name}.json"
        path.write_text(json.dumps(self.content, indent=1) + "\n")
        print(f"{path.relative_to(ROOT)} written after {self.content['seconds']:.0f} s")

    def plot(self) -> Path:
        PLOTS.mkdir(parents=True, exist_ok=True)
        return PLOTS / f"{self.name}.png"


def command() -> str:
    """How to run this again."""
    return os.environ.get("BENCH_COMMAND", " ".join(sys.argv))


def progress(text: str) -> None:
    print(f"  {text}", flush=True)


def table(head: Sequence[str], rows: Iterable[Sequence]) -> None:
    """Prints columns, the first to the left, the others to the right."""
    lines = [list(head), *([shown(value) for value in row] for row in rows)]
    widths = [max(len(line[c]) for line in lines) for c in range(len(head))]
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  " + "  ".join(cells).rstrip())


def shown(value) -> str:
    """Three digits are as many as a benchmark knows."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.{2 if abs(value) >= 1 else 3}f}"


def ratio(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


def geometric_mean(values: Iterable[float]) -> float | None:
    values = [value for value in values if value]
    if not values:
        return None
    product = 1.0
    for value in values:
        product *= value ** (1 / len(values))
    return product


def quartiles(values: Sequence[float]) -> list[float]:
    """The first and the third."""
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return [first, third]


def median(values: Sequence[float]) -> float | None:
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2

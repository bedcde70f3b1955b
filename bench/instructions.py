"""`make bench-instructions`: instructions of the hot paths of keeper and channel, counted
by callgrind, beside the committed baseline (bench/results/instructions.json). Fails when one
has grown by more than LIMIT percent. PUBLISH=1 makes what is measured the baseline.

Counts do not depend on load or clock; they do on the compiler and on what the processor can do
(libraries choose their code by it): the baseline names both and is not compared under others.
"""

import hashlib
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import plots
from hot_paths import CASES
from report import PUBLISH, ROOT, Report, parameter, progress, ratio, table
from stack import ROOT as PROJECT

LIMIT = parameter("LIMIT", 5.0)
BASELINE = ROOT / "bench/results/instructions.json"


def build() -> str:
    """The example's path."""
    command = ["cargo", "build", "--release", "--quiet", "-p", "keeper", "--example"]
    subprocess.run([*command, "instructions"], cwd=PROJECT, check=True)
    return str(PROJECT / "target/release/examples/instructions")


def count(binary: str, case: str, times: int) -> int:
    done = subprocess.run(
        [
            *("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"),
            *(binary, case, str(times)),
        ],
        capture_output=True,
        text=True,
    )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        raise SystemExit(f"{case}: " + "\n".join(done.stderr.splitlines()[-5:]))
    return int(found.group(1))


def surroundings() -> dict:
    """What counts depend on."""
    compiler = subprocess.run(["rustc", "-V"], capture_output=True, text=True, cwd=PROJECT)
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    able = " ".join(sorted(flags.group(1).split())) if flags else ""
    return {
        "compiler": compiler.stdout.strip(),
        "processor": hashlib.sha256(able.encode()).hexdigest()[:12],
    }


def baseline(here: dict) -> dict:
    if not BASELINE.exists():
        return {}
    content = json.loads(BASELINE.read_text())
    there = {name: content["parameters"].get(name) for name in here}
    if there != here:
        print(f"  the baseline is of {there}, here is {here}: not compared")
        return {}
    return content["results"]["cases"]


def main() -> None:
    here = surroundings()
    report = Report("instructions", {"LIMIT": LIMIT, **here})
    before = baseline(here)
    binary = build()
    report.results["cases"] = cases = {}
    grown, rows = [], []
    # Counts do not depend on what runs beside: all processors count.
    pool = ThreadPoolExecutor(os.cpu_count())
    counts = {
        case: [pool.submit(count, binary, case, n * times) for n in (1, 3)]
        for case, (_, times, _) in CASES.items()
    }
    for case, (name, times, divisor) in CASES.items():
        once, thrice = (counted.result() for counted in counts[case])
        found = (thrice - once) / (2 * times * divisor)
        known = before.get(name, {}).get("instructions")
        growth = ratio(found, known)
        cases[name] = {"instructions": round(found, 2)}
        rows.append([name, found, known, growth])
        progress(f"{name}: {found:.1f}")
        if growth and growth > 1 + LIMIT / 100:
            grown.append(name)
    table(["path", "instructions", "baseline", "ratio"], rows)
    values = [entry["instructions"] for entry in cases.values()]
    labels = [case.replace("-", "\n") for case in CASES]
    plots.bars(report.plot(), "Instructions", labels, {"now": values}, "instructions", log=True)
    report.write()
    if grown and not PUBLISH:
        raise SystemExit(f"more than {LIMIT:g} % above the baseline: {', '.join(grown)}")


if __name__ == "__main__":
    main()

"""Pictures of figures. Nothing is measured or computed here."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

COLOURS = ["#9aa5b1", "#1f6f8b", "#e08e45", "#7a5195", "#3a7d44", "#b5485d"]


def bars(
    path: Path,
    title: str,
    labels: Sequence[str],
    series: dict[str, Sequence[float | None]],
    unit: str,
    goal: float | None = None,
    log: bool = False,
) -> None:
    """Groups of bars, one group for each label, one colour for each series."""
    figure, axes = pyplot.subplots(figsize=(max(6, 0.4 * len(labels) * len(series) ** 0.5), 3.6))
    width = 0.8 / max(1, len(series))
    for number, (name, values) in enumerate(series.items()):
        places = [i + (number - (len(series) - 1) / 2) * width for i in range(len(labels))]
        heights = [value or 0 for value in values]
        axes.bar(places, heights, width, label=name, color=COLOURS[number % len(COLOURS)])
    axes.set_xticks(range(len(labels)), labels)
    finish(figure, axes, path, title, unit, goal, log)


def lines(
    path: Path,
    title: str,
    x: Sequence[float],
    series: dict[str, Sequence[float | None]],
    unit: str,
    x_unit: str,
) -> None:
    """A line for each series over the same x."""
    figure, axes = pyplot.subplots(figsize=(6, 3.6))
    for number, (name, values) in enumerate(series.items()):
        axes.plot(x, values, marker="o", label=name, color=COLOURS[number % len(COLOURS)])
    axes.set_xlabel(x_unit)
    axes.set_xticks(x)
    axes.set_ylim(bottom=0)
    finish(figure, axes, path, title, unit)


def finish(figure, axes, path, title, unit, goal=None, log=False) -> None:
    if log:
        axes.set_yscale("log")
    if goal is not None:
        axes.axhline(goal, color="#333333", linewidth=0.8, linestyle="--")
    axes.set_ylabel(unit)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)

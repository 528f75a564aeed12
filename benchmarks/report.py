"""The results of a workload as a table for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from benchmarks.results import ComparisonResult, Spread, WorkloadResult, spread

_MENTIONED: Final = 0.02


def table(result: WorkloadResult) -> str:
    """A heading, then for each comparison the figures and the ratios, medians first."""
    return "\n".join([f"{result.name}: {result.question}", *(_section(part) for part in result.comparisons)]) + "\n"


def _section(result: ComparisonResult) -> str:
    rounds = len(next(iter(result.figures.values())))
    extremes = f"min .. max of {rounds} round{'s' if rounds > 1 else ''}"
    if (stolen := max(result.stolen)) >= _MENTIONED:
        extremes += f"; others had up to {stolen:.0%} of the machine"
    rows = [(result.name, result.quantity.unit, extremes), *_rows(result)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"  {name:<{widths[0]}}  {median:>{widths[1]}}  {extremes}" for name, median, extremes in rows]
    return "\n".join(["", *lines])


def _rows(result: ComparisonResult) -> Iterator[tuple[str, str, str]]:
    for name, values in result.figures.items():
        yield _row(name, spread(values), result.quantity.shown)
    for ratio in result.ratios:
        yield _row(ratio.name, spread(result.ratio_by_round(ratio)), lambda value: f"{value:.2f}×")


def _row(name: str, values: Spread, shown: Callable[[float], str]) -> tuple[str, str, str]:
    return name, shown(values.median), f"{shown(values.minimum)} .. {shown(values.maximum)}"

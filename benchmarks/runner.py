"""Lets contenders take turns.

One after the other in each round, not each with all its rounds at once: a machine's speed drifts, and turns spread the drift over
all. Each round begins with another contender, so that nobody always follows the same one.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.comparison import Comparison, Contender
from benchmarks.progress import say
from benchmarks.results import ComparisonResult, WorkloadResult
from benchmarks.workloads import Bench, Workload


def run(workload: Workload, bench: Bench) -> WorkloadResult:
    say(f"{workload.name}: preparing")
    with workload.prepare(bench) as comparisons:
        results = tuple(_compare(comparison, bench.rounds or comparison.rounds) for comparison in comparisons)
    return WorkloadResult(workload.name, workload.question, results)


def _compare(comparison: Comparison, rounds: int) -> ComparisonResult:
    figures: dict[str, list[float]] = {}
    for contender in comparison.contenders if comparison.warm_up else ():
        _measure(comparison, contender, "warm-up")
    for number in range(rounds):
        for contender in _turned(comparison.contenders, number):
            measured = _measure(comparison, contender, f"round {number + 1} of {rounds}")
            for label, value in measured.items():
                figures.setdefault(label, []).append(value)
    return ComparisonResult(comparison.name, comparison.quantity, figures, comparison.ratios)


def _measure(comparison: Comparison, contender: Contender, occasion: str) -> dict[str, float]:
    figures = {contender.label(name): value for name, value in contender.measure().figures.items()}
    shown = "; ".join(f"{label} {comparison.quantity.shown(value)}" for label, value in figures.items())
    say(f"{comparison.name}: {occasion}: {shown} {comparison.quantity.unit}")
    return figures


def _turned(contenders: Sequence[Contender], number: int) -> Sequence[Contender]:
    start = number % len(contenders)
    return [*contenders[start:], *contenders[:start]]

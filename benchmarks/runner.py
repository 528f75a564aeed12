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
        results = tuple(_compare(comparison, bench.rounds) for comparison in comparisons)
    return WorkloadResult(workload.name, workload.question, results)


def _compare(comparison: Comparison, rounds: int) -> ComparisonResult:
    rates: dict[str, list[float]] = {contender.name: [] for contender in comparison.contenders}
    for contender in comparison.contenders:
        _measure(contender, f"{comparison.name}: warm-up")
    for number in range(rounds):
        for contender in _turned(comparison.contenders, number):
            rate = _measure(contender, f"{comparison.name}: round {number + 1} of {rounds}")
            rates[contender.name].append(rate)
    return ComparisonResult(comparison.name, rates, comparison.ratios)


def _measure(contender: Contender, occasion: str) -> float:
    rate = contender.measure().rate
    say(f"{occasion}: {contender.name} {rate:,.0f} msg/s")
    return rate


def _turned(contenders: Sequence[Contender], number: int) -> Sequence[Contender]:
    start = number % len(contenders)
    return [*contenders[start:], *contenders[:start]]

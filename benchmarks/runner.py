"""Lets contenders take turns.

One after the other in each round, not each with all its rounds at once: a machine's speed drifts, and turns spread the drift over
all. Each round begins with another contender, so that nobody always follows the same one. A round in which the host of a virtual
machine took much of its time is measured again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.comparison import Comparison, Contender
from benchmarks.cpu_steal import Stopwatch
from benchmarks.progress import say
from benchmarks.results import ComparisonResult, WorkloadResult
from benchmarks.workloads import Bench, Workload


@dataclass(frozen=True, slots=True)
class _Round:
    figures: dict[str, float]
    stolen: float


def run(workload: Workload, bench: Bench) -> WorkloadResult:
    say(f"{workload.name}: preparing")
    with workload.prepare(bench) as comparisons:
        results = tuple(_compare(comparison, bench.rounds or comparison.rounds) for comparison in comparisons)
    return WorkloadResult(workload.name, workload.question, results)


def _compare(comparison: Comparison, count: int) -> ComparisonResult:
    for contender in comparison.contenders if comparison.warm_up else ():
        _measure(comparison, contender, "warm-up")
    rounds = _undisturbed(comparison, count)
    figures = {label: [each.figures[label] for each in rounds] for label in rounds[0].figures}
    return ComparisonResult(
        comparison.name, comparison.quantity, figures, comparison.ratios, [each.stolen for each in rounds]
    )


def _undisturbed(comparison: Comparison, count: int) -> list[_Round]:
    """So many rounds, in their order: of up to twice as many those from which the least was stolen."""
    rounds: list[_Round] = []
    while sum(each.stolen <= comparison.most_stolen for each in rounds) < count and len(rounds) < 2 * count:
        rounds.append(_round(comparison, len(rounds), count))
    kept = sorted(range(len(rounds)), key=lambda number: rounds[number].stolen)[:count]
    return [rounds[number] for number in sorted(kept)]


def _round(comparison: Comparison, number: int, count: int) -> _Round:
    watch = Stopwatch.start()
    figures: dict[str, float] = {}
    occasion = f"round {number + 1} of {count}" if number < count else f"round {number + 1}, instead of another"
    for contender in _turned(comparison.contenders, number):
        figures |= _measure(comparison, contender, occasion)
    stolen = watch.stolen()
    if stolen > comparison.most_stolen:
        say(f"{comparison.name}: round {number + 1} is worth little: the host took {stolen:.1%} of this machine's time")
    return _Round(figures, stolen)


def _measure(comparison: Comparison, contender: Contender, occasion: str) -> dict[str, float]:
    figures = {contender.label(name): value for name, value in contender.measure().figures.items()}
    shown = "; ".join(f"{label} {comparison.quantity.shown(value)}" for label, value in figures.items())
    say(f"{comparison.name}: {occasion}: {shown} {comparison.quantity.unit}")
    return figures


def _turned(contenders: Sequence[Contender], number: int) -> Sequence[Contender]:
    start = number % len(contenders)
    return [*contenders[start:], *contenders[:start]]

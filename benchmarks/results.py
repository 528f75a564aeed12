"""What the rounds gave, and the few numbers that stand for them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.comparison import Quantity, Ratio


@dataclass(frozen=True, slots=True)
class Spread:
    """Some values by their median and their extremes."""

    median: float
    minimum: float
    maximum: float


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The figures of each contender by label, round by round, and which part of the machine's time others had in it."""

    name: str
    quantity: Quantity
    figures: dict[str, list[float]]
    ratios: tuple[Ratio, ...]
    stolen: list[float]

    def ratio_by_round(self, ratio: Ratio) -> list[float]:
        """Each round's own ratio: what slows the machine for a while slows both sides of it."""
        pairs = zip(self.figures[ratio.over], self.figures[ratio.under], strict=True)
        return [over / under for over, under in pairs]


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    name: str
    question: str
    comparisons: tuple[ComparisonResult, ...]

"""What a workload asks the runner to compare, and what one round gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    """One round: so many messages in so many seconds."""

    message_count: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.message_count / self.seconds


@dataclass(frozen=True, slots=True)
class Contender:
    """One side of a comparison: a system, or one system in one situation. `measure` does a whole round."""

    name: str
    measure: Callable[[], Measurement]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Which contender's rate is divided by which."""

    over: str
    under: str

    @property
    def name(self) -> str:
        return f"{self.over} / {self.under}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Contenders that take turns, and the ratios that answer the question."""

    name: str
    contenders: tuple[Contender, ...]
    ratios: tuple[Ratio, ...]


def against_each(subject: str, contenders: tuple[Contender, ...]) -> tuple[Ratio, ...]:
    """The ratios of one contender to each other one."""
    return tuple(Ratio(subject, contender.name) for contender in contenders if contender.name != subject)

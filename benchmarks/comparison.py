"""What a workload asks the runner to compare, and what one round gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is measured: its name in the records, and how people see it."""

    name: str
    unit: str
    decimals: int

    def shown(self, value: float) -> str:
        return f"{value:,.{self.decimals}f}"


RATE: Final = Quantity("messages_per_second", "msg/s", 0)
LATENCY: Final = Quantity("milliseconds", "ms", 2)
TIME: Final = Quantity("seconds", "s", 2)
CPU: Final = Quantity("percent_of_a_core", "% of a core", 2)
MEMORY: Final = Quantity("megabytes", "MB", 1)


class Round(Protocol):
    """What one round gives."""

    @property
    def figures(self) -> Mapping[str, float]:
        """One or several figures of the comparison's quantity, by name. One that needs none is called ""."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One round: so many messages in so many seconds."""

    message_count: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.message_count / self.seconds

    @property
    def figures(self) -> Mapping[str, float]:
        return {"": self.rate}


@dataclass(frozen=True, slots=True)
class Single:
    """One round: one figure of whatever the comparison measures."""

    value: float

    @property
    def figures(self) -> Mapping[str, float]:
        return {"": self.value}


@dataclass(frozen=True, slots=True)
class Contender:
    """One side of a comparison: a system, or one system in one situation. `measure` does a whole round."""

    name: str
    measure: Callable[[], Round]

    def label(self, figure: str) -> str:
        """What one of its figures is called in results and ratios."""
        return f"{self.name}, {figure}" if figure else self.name


@dataclass(frozen=True, slots=True)
class Ratio:
    """Which figure is divided by which, both by their labels."""

    over: str
    under: str

    @property
    def name(self) -> str:
        return f"{self.over} / {self.under}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Contenders that take turns, and the ratios that answer the question.

    Attributes:
        name: The situation that all contenders are in.
        contenders: Who takes turns.
        ratios: The answers.
        quantity: What every figure is.
        rounds: How many, unless the command line says.
        warm_up: Whether each contender does a round that does not count. Long rounds warm up by themselves.
        most_stolen: A round that lost more of the machine's time to its host is measured again.
    """

    name: str
    contenders: tuple[Contender, ...]
    ratios: tuple[Ratio, ...]
    quantity: Quantity = RATE
    rounds: int = 5
    warm_up: bool = True
    most_stolen: float = 0.05


def against_each(subject: str, contenders: tuple[Contender, ...]) -> tuple[Ratio, ...]:
    """The ratios of one contender to each other one."""
    return tuple(Ratio(subject, contender.name) for contender in contenders if contender.name != subject)

"""Putting in and taking out at the same rate, by several workers, for a given time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Final

from benchmarks.messages import Message, batches
from benchmarks.processes import run_jobs
from benchmarks.systems.base import Consumer, ExchangingSystem, Publisher

_WARM_UP_CALLS: Final = 12
_QUARTERS: Final = 4
# Made beforehand and used again and again: making messages is nobody's merit.
_BATCHES_MADE: Final = 100


@dataclass(frozen=True, slots=True)
class Exchanged:
    """One round: how many messages went through in each quarter of its time."""

    quarters: tuple[int, ...]
    seconds: float

    @property
    def figures(self) -> Mapping[str, float]:
        first, *_, last = (message_count / (self.seconds / _QUARTERS) for message_count in self.quarters)
        return {"": sum(self.quarters) / self.seconds, "first quarter": first, "last quarter": last}


@dataclass(frozen=True, slots=True)
class ExchangeJob:
    """One worker, who publishes a batch, then receives and acks one, and so on until time is up."""

    system: ExchangingSystem
    url: str
    place: str
    batch_size: int
    seconds: float

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], tuple[int, ...]]]:
        made = list(batches(0, batch_count=_BATCHES_MADE, batch_size=self.batch_size))
        with (
            self.system.open_publisher(self.url) as publisher,
            self.system.open_consumer(self.url, self.place) as consumer,
        ):
            for batch in made[:_WARM_UP_CALLS]:
                self._exchange(publisher, consumer, batch)
            yield lambda: self._work(publisher, consumer, made)

    def _work(self, publisher: Publisher, consumer: Consumer, made: Sequence[list[Message]]) -> tuple[int, ...]:
        quarters = [0] * _QUARTERS
        started_at = time.monotonic()
        for number in count():
            received = self._exchange(publisher, consumer, made[number % len(made)])
            quarter = int((time.monotonic() - started_at) / self.seconds * _QUARTERS)
            if quarter >= _QUARTERS:
                break
            quarters[quarter] += received
        return tuple(quarters)

    def _exchange(self, publisher: Publisher, consumer: Consumer, batch: Sequence[Message]) -> int:
        """Put in as many as are taken out. A worker may get less, if another has been faster, and finds more the next time."""
        publisher.publish_many(self.place, batch)
        return consumer.receive_and_ack(self.batch_size)


def exchange(
    system: ExchangingSystem, url: str, place: str, *, worker_count: int, batch_size: int, seconds: float
) -> Exchanged:
    """One round.

    Raises:
        RuntimeError: Nothing went through in some quarter of the time.
    """
    spans = run_jobs([ExchangeJob(system, url, place, batch_size, seconds) for _ in range(worker_count)])
    quarters = tuple(sum(parts) for parts in zip(*(span.result for span in spans), strict=True))
    if not all(quarters):
        raise RuntimeError(f"{system.name} came to a halt: {quarters} messages in the quarters of {seconds} s")
    return Exchanged(quarters, seconds)

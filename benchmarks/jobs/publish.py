"""Publishing by several producers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Final

from benchmarks.comparison import Contender, Measurement
from benchmarks.messages import Message, batches
from benchmarks.processes import run_together
from benchmarks.systems.base import Publisher, PublishingSystem, fresh_place

# psycopg prepares a statement at its sixth execution, and Postgres settles on a plan at about its sixth.
_WARM_UP_CALLS: Final = 12


@dataclass(frozen=True, slots=True)
class Load:
    """How much is published in one round, and how. A batch size of 1 means single messages, by the call for one."""

    producer_count: int
    batch_size: int
    message_count: int

    @property
    def name(self) -> str:
        size = f"batches of {self.batch_size}" if self.batch_size > 1 else "single messages"
        return f"{size}, {self.producer_count} producers"

    @property
    def call_count(self) -> int:
        """Calls of one producer."""
        return self.message_count // self.producer_count // self.batch_size


@dataclass(frozen=True, slots=True)
class PublishJob:
    """One producer. With several places it goes around them."""

    system: PublishingSystem
    url: str
    places: tuple[str, ...]
    batch_size: int
    call_count: int
    warm_up_count: int

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        # Made beforehand: making messages is nobody's merit.
        prepared = list(batches(0, batch_count=self.call_count, batch_size=self.batch_size))
        with self.system.open_publisher(self.url) as publisher:
            self._publish(publisher, batches(0, batch_count=self.warm_up_count, batch_size=self.batch_size))
            yield lambda: self._publish(publisher, prepared)

    def _publish(self, publisher: Publisher, prepared: Iterable[list[Message]]) -> int:
        message_count = 0
        for place, batch in zip(cycle(self.places), prepared, strict=False):
            if self.batch_size == 1:
                publisher.publish(place, batch[0])
            else:
                publisher.publish_many(place, batch)
            message_count += len(batch)
        return message_count


def publish(system: PublishingSystem, url: str, places: tuple[str, ...], load: Load) -> Measurement:
    """One round into places that are there."""
    jobs = [
        PublishJob(system, url, _turned(places, producer, load), load.batch_size, load.call_count, _warm_up(places))
        for producer in range(load.producer_count)
    ]
    return run_together(jobs)


def publish_fresh(system: PublishingSystem, url: str, load: Load) -> Measurement:
    """One round into a new place, which must then hold all that was published.

    Raises:
        RuntimeError: It does not.
    """
    with fresh_place(system, url) as place:
        measurement = publish(system, url, (place,), load)
        published = measurement.message_count + _warm_up((place,)) * load.batch_size * load.producer_count
        stored = system.count(url, place)
        if stored != published:
            raise RuntimeError(f"{system.name} was given {published} messages and holds {stored}")
        return measurement


def fresh_contenders(systems: tuple[PublishingSystem, ...], url: str, load: Load) -> tuple[Contender, ...]:
    """Each system, publishing the same load into a new place each round."""
    return tuple(_fresh_contender(system, url, load) for system in systems)


def _fresh_contender(system: PublishingSystem, url: str, load: Load) -> Contender:
    return Contender(system.name, lambda: publish_fresh(system, url, load))


def _turned(places: tuple[str, ...], producer: int, load: Load) -> tuple[str, ...]:
    """The places as one producer goes around them: each begins elsewhere, so that they do not march in step."""
    start = producer * len(places) // load.producer_count
    return places[start:] + places[:start]


def _warm_up(places: tuple[str, ...]) -> int:
    """Calls before the clock starts. Every place is touched once: the first touch loads caches."""
    return max(_WARM_UP_CALLS, len(places))

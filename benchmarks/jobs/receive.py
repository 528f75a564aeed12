"""Receiving and acking by several workers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.comparison import Contender, Measurement
from benchmarks.processes import run_together
from benchmarks.systems.base import ConsumingSystem, fresh_place

_WARM_UP_CALLS: Final = 12


@dataclass(frozen=True, slots=True)
class ReceiveLoad:
    """How many messages wait, and how workers take them."""

    worker_count: int
    batch_size: int
    message_count: int

    @property
    def name(self) -> str:
        size = f"batches of {self.batch_size}" if self.batch_size > 1 else "one by one"
        return f"{size}, {self.worker_count} workers"


@dataclass(frozen=True, slots=True)
class ReceiveJob:
    """One worker. It works until nothing is left."""

    system: ConsumingSystem
    url: str
    place: str
    batch_size: int
    worker: int
    worker_count: int

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        with self.system.open_consumer(
            self.url, self.place, worker=self.worker, worker_count=self.worker_count
        ) as consumer:
            for _ in range(_WARM_UP_CALLS):
                consumer.receive_and_ack(self.batch_size)

            def work() -> int:
                message_count = 0
                while received := consumer.receive_and_ack(self.batch_size):
                    message_count += received
                return message_count

            yield work


def receive_fresh(system: ConsumingSystem, url: str, load: ReceiveLoad) -> Measurement:
    """One round over a new place with all messages in it, which must all be received.

    Raises:
        RuntimeError: Some were not, or some twice.
    """
    warm_up_count = _WARM_UP_CALLS * load.worker_count * load.batch_size
    with fresh_place(system, url) as place:
        system.fill(url, place, load.message_count + warm_up_count)
        jobs = [
            ReceiveJob(system, url, place, load.batch_size, worker, load.worker_count)
            for worker in range(load.worker_count)
        ]
        measurement = run_together(jobs)
    # A warm-up call may get fewer than it asked for, when the other worker has just taken them.
    if not load.message_count <= measurement.message_count <= load.message_count + warm_up_count:
        raise RuntimeError(f"{system.name} gave out {measurement.message_count} of {load.message_count} messages")
    return measurement


def receive_contenders(systems: tuple[ConsumingSystem, ...], url: str, load: ReceiveLoad) -> tuple[Contender, ...]:
    """Each system, draining the same backlog each round."""
    return tuple(_contender(system, url, load) for system in systems)


def _contender(system: ConsumingSystem, url: str, load: ReceiveLoad) -> Contender:
    return Contender(system.name, lambda: receive_fresh(system, url, load))

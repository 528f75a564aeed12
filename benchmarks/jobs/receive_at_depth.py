"""Receiving and acking while about as many messages wait all the time.

The clock runs only while a slice is received; then it stops and as many messages are put in. So any number of messages can be
received from a shallow place, and whoever receives from a deep one does exactly the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.comparison import Measurement
from benchmarks.processes import run_jobs
from benchmarks.systems.base import Consumer, ConsumingSystem

_WARM_UP_CALLS: Final = 12


@dataclass(frozen=True, slots=True)
class DepthLoad:
    """How one worker receives: a slice is what it takes between two stops of the clock."""

    batch_size: int
    slice_size: int
    slice_count: int

    @property
    def name(self) -> str:
        return f"batches of {self.batch_size}, 1 worker" if self.batch_size > 1 else "one by one, 1 worker"


@dataclass(frozen=True, slots=True)
class ReceiveAtDepthJob:
    system: ConsumingSystem
    url: str
    place: str
    load: DepthLoad

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], Measurement]]:
        with self.system.open_consumer(self.url, self.place) as consumer:
            received = sum(consumer.receive_and_ack(self.load.batch_size) for _ in range(_WARM_UP_CALLS))
            self.system.fill(self.url, self.place, received)
            yield lambda: self._receive_slices(consumer)

    def _receive_slices(self, consumer: Consumer) -> Measurement:
        seconds = 0.0
        message_count = 0
        for _ in range(self.load.slice_count):
            started_at = time.monotonic()
            received = self._receive_slice(consumer)
            seconds += time.monotonic() - started_at
            self.system.fill(self.url, self.place, received)
            message_count += received
        return Measurement(message_count, seconds)

    def _receive_slice(self, consumer: Consumer) -> int:
        """Receive, by as many calls as a slice has batches: at any depth there are always full ones.

        Raises:
            RuntimeError: One was not.
        """
        received = 0
        for _ in range(self.load.slice_size // self.load.batch_size):
            received += consumer.receive_and_ack(self.load.batch_size)
        if received < self.load.slice_size:
            raise RuntimeError(f"{self.system.name} gave {received} of {self.load.slice_size} messages that waited")
        return received


def receive_at_depth(system: ConsumingSystem, url: str, place: str, load: DepthLoad) -> Measurement:
    """One round in a place which holds more messages than a slice has, and holds as many afterwards."""
    [span] = run_jobs([ReceiveAtDepthJob(system, url, place, load)])
    return span.result

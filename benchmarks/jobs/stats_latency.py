"""How long it takes to see where things stand."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Final

import postbus
from benchmarks.comparison import Single

_BATCH_SIZE: Final = 10
_WARM_UP_CALLS: Final = 12
_CALLS: Final = 100


def move_all(url: str, stream: str) -> None:
    """Each consumer of a stream acks some messages and leases some, so that all have a position and something in flight."""
    with postbus.connect(url) as bus:
        for info in bus.list_consumers(stream):
            consumer = bus.consumer(stream, info.name)
            consumer.receive(_BATCH_SIZE, ack=consumer.receive(_BATCH_SIZE), ack_wait=86400)


def median_of(url: str, look: Callable[[postbus.Bus], object]) -> Single:
    """The median of many looks on one connection, in milliseconds."""
    seconds: list[float] = []
    with postbus.connect(url) as bus:
        for number in range(_WARM_UP_CALLS + _CALLS):
            started_at = time.monotonic()
            look(bus)
            if number >= _WARM_UP_CALLS:
                seconds.append(time.monotonic() - started_at)
    return Single(1000 * statistics.median(seconds))

"""Urgent messages into a backlog: how long until the next receive of a worker gives them, and whether it is the very next."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass

import postbus
from benchmarks.messages import message

_URGENT = 9


@dataclass(frozen=True, slots=True)
class Overtaking:
    """One round: the seconds of each publish with the receive after it."""

    seconds: tuple[float, ...]
    default_seconds: tuple[float, ...]

    @property
    def figures(self) -> Mapping[str, float]:
        percentiles = statistics.quantiles(self.seconds, n=100, method="inclusive")
        return {
            "receive of an urgent message, p50": 1000 * percentiles[49],
            "p99": 1000 * percentiles[98],
            "receive of the next one, p50": 1000 * statistics.median(self.default_seconds),
        }


def overtake(url: str, place: str, consumer_name: str, message_count: int) -> Overtaking:
    """Publish an urgent message, receive it, and then one of the backlog, and so on.

    Raises:
        RuntimeError: A receive gave something else.
    """
    urgent: list[float] = []
    default: list[float] = []
    with postbus.connect(url) as bus:
        consumer = bus.consumer(place, consumer_name)
        for number in range(message_count):
            made = message(number)
            bus.publish(place, key=f"urgent.{number}", data=made.data, priority=_URGENT)
            for seconds, wanted in ((urgent, _URGENT), (default, 4)):
                began = time.monotonic()
                batch = consumer.receive()
                seconds.append(time.monotonic() - began)
                if [each.priority for each in batch] != [wanted]:
                    raise RuntimeError(f"a receive gave {[each.priority for each in batch]} instead of {wanted}")
                consumer.ack(batch)
    return Overtaking(tuple(urgent), tuple(default))

"""Messages that are due at a time: how late each is received."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import postbus

_AHEAD: Final = 3.0
_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Lateness:
    """One round: by how many seconds each message was late."""

    seconds: tuple[float, ...]

    @property
    def figures(self) -> Mapping[str, float]:
        percentiles = statistics.quantiles(self.seconds, n=100, method="inclusive")
        return {"p50": 1000 * percentiles[49], "p99": 1000 * percentiles[98], "latest": 1000 * max(self.seconds)}


def lateness_of(url: str, place: str, consumer_name: str, message_count: int, *, spread: float) -> Lateness:
    """Schedule messages for times that are spread over so many seconds, and receive them in a loop; all have a priority.

    The database is on this machine, so both have one clock. The receiver that waits has them
    published.
    """
    with postbus.connect(url) as bus:
        start = datetime.now(UTC) + timedelta(seconds=_AHEAD + message_count / 5_000)
        made = [(start + timedelta(seconds=spread * n / message_count), n) for n in range(message_count)]
        if spread:
            for due_at, number in made:
                bus.publish(
                    place, data={"id": number, "due": due_at.timestamp()}, deliver_at=due_at, priority=9 - number % 10
                )
        else:
            for first in range(0, message_count, _AT_ONCE):
                batch = [
                    postbus.Message(data={"id": number, "due": due_at.timestamp()}, priority=9 - number % 10)
                    for due_at, number in made[first : first + _AT_ONCE]
                ]
                bus.publish_many(place, batch, deliver_at=start)
        late: list[float] = []
        consumer = bus.consumer(place, consumer_name)
        last: postbus.Batch | None = None
        while len(late) < message_count:
            last = consumer.receive(1000, wait=20, ack=last)
            now = time.time()
            if not last:
                raise RuntimeError(f"{len(late)} of {message_count} messages came, then none")
            late += [now - each.data["due"] for each in last]
    return Lateness(tuple(late))

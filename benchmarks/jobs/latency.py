"""How long a message takes from the call that publishes it to a worker who waits for it in another process."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.messages import Message, message
from benchmarks.processes import Job, run_jobs
from benchmarks.systems.base import Poller, PollingSystem, Publisher, fresh_place

_WARM_UP_COUNT: Final = 20
_MAX_MESSAGES: Final = 10
# In a row. While it warms up, a poller may have to wait for the sender to start.
_EMPTY_POLLS: Final = 6


@dataclass(frozen=True, slots=True)
class Pace:
    """So many messages, on average so many per second."""

    message_count: int
    rate: float

    def pauses(self) -> Iterator[float]:
        """Seconds between messages that know nothing of each other, the same in every round.

        A beat would fall in step with whoever looks for messages at intervals.
        """
        source = random.Random(self.message_count)
        return (source.expovariate(self.rate) for _ in range(self.message_count))


@dataclass(frozen=True, slots=True)
class Latencies:
    """One round: the seconds that each message took, and the part of the call that published it."""

    seconds: tuple[float, ...]
    publish_seconds: tuple[float, ...]

    @property
    def figures(self) -> Mapping[str, float]:
        percentiles = statistics.quantiles(self.seconds, n=100, method="inclusive")
        figures = {f"p{percent}": 1000 * percentiles[percent - 1] for percent in (50, 95, 99)}
        return {**figures, "p50 of the publish call": 1000 * statistics.median(self.publish_seconds)}


@dataclass(frozen=True, slots=True)
class SendJob:
    """Publishes at a pace, and returns how long each call took.

    The time goes along in the data: processes of one machine have one monotonic clock.
    """

    system: PollingSystem
    url: str
    place: str
    pace: Pace

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], tuple[float, ...]]]:
        with self.system.open_publisher(self.url) as publisher:
            for number in range(_WARM_UP_COUNT):
                self._send(publisher, number)
            yield lambda: self._work(publisher)

    def _work(self, publisher: Publisher) -> tuple[float, ...]:
        durations: list[float] = []
        due_at = time.monotonic()
        for number, pause in enumerate(self.pace.pauses()):
            due_at += pause
            time.sleep(max(0.0, due_at - time.monotonic()))
            durations.append(self._send(publisher, number))
        return tuple(durations)

    def _send(self, publisher: Publisher, number: int) -> float:
        made = message(number)
        sent_at = time.monotonic()
        publisher.publish(self.place, Message(made.key, {**made.data, "sent_at": sent_at}))
        return time.monotonic() - sent_at


@dataclass(frozen=True, slots=True)
class PollJob:
    """Waits for messages until it has them all, and returns how long each took."""

    system: PollingSystem
    url: str
    place: str
    pace: Pace

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], tuple[float, ...]]]:
        with self.system.open_poller(self.url, self.place) as poller:
            self._poll(poller, _WARM_UP_COUNT)
            yield lambda: self._poll(poller, self.pace.message_count)

    def _poll(self, poller: Poller, message_count: int) -> tuple[float, ...]:
        """Receive so many messages.

        Raises:
            RuntimeError: No more came, or there were too many.
        """
        latencies: list[float] = []
        empty_polls = 0
        while len(latencies) < message_count:
            received = poller.receive(_MAX_MESSAGES)
            now = time.monotonic()
            empty_polls = 0 if received else empty_polls + 1
            if empty_polls == _EMPTY_POLLS:
                raise RuntimeError(f"{self.system.name} gave {len(latencies)} of {message_count} messages, then none")
            latencies += (now - data["sent_at"] for data in received)
        if len(latencies) > message_count:
            raise RuntimeError(f"{self.system.name} gave {len(latencies)} messages instead of {message_count}")
        return tuple(latencies)


def latencies_of(system: PollingSystem, url: str, pace: Pace) -> Latencies:
    """One round in a new place."""
    with fresh_place(system, url) as place:
        jobs: list[Job[tuple[float, ...]]] = [SendJob(system, url, place, pace), PollJob(system, url, place, pace)]
        sent, polled = run_jobs(jobs)
    return Latencies(polled.result, sent.result)

"""A queue at a steady rate, with a publisher, a worker and maintenance, while somebody watches what it takes on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Final

import psycopg

import postbus
from benchmarks.messages import batches, look_into
from benchmarks.processes import Job, run_jobs
from benchmarks.progress import say

_QUEUE: Final = "steady"
_BATCH_SIZE: Final = 20
_RECEIVE: Final = 100
_BATCHES_MADE: Final = 100
_PARTS: Final = 5
_EMPTY_RECEIVES: Final = 30
_LATE: Final = 1.05
# All of Postbus: nothing else is in this database, and what it holds for the queue lies in tables that queues share, too.
_SIZE: Final = """
select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
from pg_class as c
where c.relnamespace = 'postbus_data'::regnamespace
    and c.relkind = 'r'
"""


@dataclass(frozen=True, slots=True)
class Steady:
    """So many messages per second, for so many seconds."""

    rate: int
    seconds: int

    @property
    def message_count(self) -> int:
        return self.rate * self.seconds // _BATCH_SIZE * _BATCH_SIZE


@dataclass(frozen=True, slots=True)
class Sizes:
    """One round: megabytes at each second."""

    megabytes: tuple[float, ...]

    @property
    def figures(self) -> Mapping[str, float]:
        length = len(self.megabytes)
        ends = [part * length // _PARTS for part in range(1, _PARTS + 1)]
        return {
            **{f"after {end} s": self.megabytes[end - 1] for end in ends},
            "most": max(self.megabytes),
        }


@dataclass(frozen=True, slots=True)
class PublishJob:
    """Publishes at the rate, or as fast as it can when it is late; returns how long it took."""

    url: str
    steady: Steady

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], float]]:
        made = list(batches(0, batch_count=_BATCHES_MADE, batch_size=_BATCH_SIZE))
        ready = [[postbus.Message(key=each.key, data=each.data) for each in batch] for batch in made]
        with postbus.connect(self.url) as bus:
            yield lambda: self._work(bus.queue(_QUEUE), ready)

    def _work(self, queue: postbus.Queue, ready: list[list[postbus.Message]]) -> float:
        started_at = time.monotonic()
        for number, batch in zip(range(self.steady.message_count // _BATCH_SIZE), cycle(ready), strict=False):
            due_at = started_at + number * _BATCH_SIZE / self.steady.rate
            time.sleep(max(0.0, due_at - time.monotonic()))
            queue.publish_many(batch)
        return time.monotonic() - started_at


@dataclass(frozen=True, slots=True)
class Worked:
    """How long it took to receive all messages, and how many calls failed and were made again."""

    seconds: float
    failed_count: int


@dataclass(frozen=True, slots=True)
class WorkJob:
    """Receives and acks until it has had all messages."""

    url: str
    steady: Steady

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], Worked]]:
        with postbus.connect(self.url) as bus:
            yield lambda: self._work(bus.queue(_QUEUE))

    def _work(self, queue: postbus.Queue) -> Worked:
        """Receive all.

        Raises:
            RuntimeError: No more came, or too many.
        """
        started_at = time.monotonic()
        received, empty, failed = 0, 0, 0
        last: postbus.Batch | None = None
        while received < self.steady.message_count:
            try:
                last = queue.receive(_RECEIVE, ack=last, wait=1)
            except postbus.Unavailable:
                # A segment was dropped under it: nothing was done, and it says to try again.
                failed += 1
                continue
            received += look_into(delivery.data for delivery in last)
            empty = 0 if last else empty + 1
            if empty == _EMPTY_RECEIVES:
                raise RuntimeError(f"{received} of {self.steady.message_count} messages came, then none")
        if last:
            queue.ack(last)
        if received > self.steady.message_count:
            raise RuntimeError(f"{received} messages came instead of {self.steady.message_count}")
        return Worked(time.monotonic() - started_at, failed)


@dataclass(frozen=True, slots=True)
class UpkeepJob:
    """Maintains as the server does, and looks at the size each second."""

    url: str
    steady: Steady

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], tuple[float, ...]]]:
        with postbus.connect(self.url) as bus, psycopg.connect(self.url, autocommit=True) as connection:
            yield lambda: self._work(bus.upkeep(), connection)

    def _work(self, upkeep: postbus.Upkeep, connection: psycopg.Connection[Any]) -> tuple[float, ...]:
        sizes: list[float] = []
        started_at = time.monotonic()
        while len(sizes) < self.steady.seconds:
            upkeep.turn()
            time.sleep(max(0.0, started_at + len(sizes) + 1 - time.monotonic()))
            ((size,),) = connection.execute(_SIZE).fetchall()
            sizes.append(size / 1e6)
        return tuple(sizes)


def sizes_of_queue(url: str, steady: Steady) -> Sizes:
    """One round, in a database that has nothing else in it."""
    with postbus.connect(url) as bus:
        bus.create_queue(_QUEUE)
    jobs: list[Job[Any]] = [PublishJob(url, steady), WorkJob(url, steady), UpkeepJob(url, steady)]
    published, worked, watched = run_jobs(jobs)
    for who, seconds in (("the publisher", published.result), ("the worker", worked.result.seconds)):
        if seconds > steady.seconds * _LATE:
            say(f"{who} did not keep up: {seconds:.0f} s instead of {steady.seconds} s")
    if worked.result.failed_count:
        say(f"the worker was told {worked.result.failed_count} times to try again")
    return Sizes(watched.result)

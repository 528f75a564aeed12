"""One writer, and several groups that each read all of it at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.messages import batches
from benchmarks.processes import Job, Span, run_jobs
from benchmarks.systems.base import ExchangingSystem, fresh_place
from benchmarks.systems.groups import GROUPS

_BATCH_SIZE: Final = 100
_IDLE_SECONDS: Final = 0.002


@dataclass(frozen=True, slots=True)
class FannedOut:
    writes: float
    reads: float
    backlog_reads: float

    @property
    def figures(self) -> Mapping[str, float]:
        return {"writes": self.writes, "reads": self.reads, "reads of a backlog": self.backlog_reads}


@dataclass(frozen=True, slots=True)
class WriteJob:
    system: ExchangingSystem
    url: str
    place: str
    message_count: int

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        made = list(batches(0, batch_count=self.message_count // _BATCH_SIZE, batch_size=_BATCH_SIZE))
        with self.system.open_publisher(self.url) as publisher:

            def work() -> int:
                for batch in made:
                    publisher.publish_many(self.place, batch)
                return self.message_count

            yield work


@dataclass(frozen=True, slots=True)
class GroupJob:
    system: ExchangingSystem
    url: str
    place: str
    group: int
    message_count: int

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        with self.system.open_consumer(self.url, self.place, worker=self.group, worker_count=GROUPS) as reader:
            first_count = reader.receive_and_ack(_BATCH_SIZE)

            def work() -> int:
                read = first_count
                while read < self.message_count:
                    found = reader.receive_and_ack(_BATCH_SIZE)
                    read += found
                    if not found:
                        time.sleep(_IDLE_SECONDS)
                return read - first_count

            yield work


def fan_out(system: ExchangingSystem, url: str, message_count: int) -> FannedOut:
    """One round: how fast it was written, how fast all groups together have read it meanwhile, to the end of the last, and how
    fast they read what is there already.
    """
    with fresh_place(system, url) as place:
        readers = [GroupJob(system, url, place, group, message_count) for group in range(GROUPS)]
        jobs: list[Job[int]] = [WriteJob(system, url, place, message_count), *readers]
        written, *read = run_jobs(jobs)
    with fresh_place(system, url) as place:
        system.fill(url, place, message_count)
        backlog = run_jobs([GroupJob(system, url, place, group, message_count) for group in range(GROUPS)])
    return FannedOut(
        writes=message_count / (written.ended_at - written.started_at),
        reads=_rate(read, written.started_at),
        backlog_reads=_rate(backlog, min(span.started_at for span in backlog)),
    )


def _rate(spans: Sequence[Span[int]], started_at: float) -> float:
    return sum(span.result for span in spans) / (max(span.ended_at for span in spans) - started_at)

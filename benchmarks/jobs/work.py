"""A worker process that handles messages until nothing is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.comparison import Measurement
from benchmarks.processes import run_jobs
from benchmarks.systems.job_queues import JobQueue, Tally, run_prepare


@dataclass(frozen=True, slots=True)
class WorkJob:
    system: JobQueue
    url: str

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], tuple[int, float]]]:
        tally = Tally()
        with asyncio.Runner() as runner:
            opened = self.system.opened(self.url, tally)
            work = runner.run(opened.__aenter__())

            def handle_all() -> tuple[int, float]:
                runner.run(work())
                return tally.count, tally.last_at

            yield handle_all
            runner.run(opened.__aexit__(None, None, None))


def work_all(system: JobQueue, url: str, job_count: int) -> Measurement:
    """One round in a new database with a backlog, which must all be handled.

    Raises:
        RuntimeError: Some were not, or some twice.
    """
    run_prepare(system, url, job_count)
    [span] = run_jobs([WorkJob(system, url)])
    handled_count, last_at = span.result
    if handled_count != job_count:
        raise RuntimeError(f"{system.name} handled {handled_count} of {job_count} messages")
    return Measurement(handled_count, last_at - span.started_at)

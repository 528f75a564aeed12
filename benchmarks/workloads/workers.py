"""Workers: a handler for each message, 16 at a time, in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.comparison import Comparison, Contender, Measurement, against_each
from benchmarks.jobs.work import work_all
from benchmarks.systems.job_queues import CONCURRENCY, JobQueue, PgQueuer, PostbusWorkers, Procrastinate
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    job_count = bench.size(5_000, quick=300)
    systems: tuple[JobQueue, ...] = (PostbusWorkers(), Procrastinate(), PgQueuer())
    contenders = tuple(Contender(system.name, partial(_work, bench, system, job_count)) for system in systems)
    yield (
        Comparison(
            f"one message at a time, {CONCURRENCY} handlers",
            contenders,
            against_each(PostbusWorkers.name, contenders),
            rounds=3,
            warm_up=False,
        ),
    )


def _work(bench: Bench, system: JobQueue, job_count: int) -> Measurement:
    with bench.database() as url:
        return work_all(system, url, job_count)


WORKLOAD = Workload("workers", "How fast does a worker handle messages, beside job queues on Postgres?", _prepare)

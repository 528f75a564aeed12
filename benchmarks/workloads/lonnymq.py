"""Beside a plain re-creation of the table of LonnyMQ's article: one by one through a worker, and with a snapshot held."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.comparison import Comparison, Contender, Measurement, against_each
from benchmarks.jobs.work import work_all
from benchmarks.systems.job_queues import CONCURRENCY, JobQueue, PostbusWorkers
from benchmarks.systems.levels import PostbusWithLevels
from benchmarks.systems.lonnymq import LonnyMq, LonnyMqWorkers
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.held_snapshot import compare_held


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    job_count = bench.size(20_000, quick=300)
    systems: tuple[JobQueue, ...] = (PostbusWorkers(), LonnyMqWorkers())
    contenders = tuple(Contender(system.name, partial(_work, bench, system, job_count)) for system in systems)
    yield (
        Comparison(
            f"one message at a time, {CONCURRENCY} handlers",
            contenders,
            against_each(PostbusWorkers.name, contenders),
            rounds=5,
            warm_up=False,
        ),
        compare_held(bench, PostbusWithLevels(), rounds=3),
        compare_held(bench, LonnyMq(), rounds=1),
    )


def _work(bench: Bench, system: JobQueue, job_count: int) -> Measurement:
    with bench.database() as url:
        return work_all(system, url, job_count)


WORKLOAD = Workload("lonnymq", "How fast is it beside the table of LonnyMQ's article?", _prepare)

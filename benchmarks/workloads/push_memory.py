"""What a process that sends for a thousand endpoints takes in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import MEMORY, Comparison, Contender
from benchmarks.endpoint import receiving
from benchmarks.jobs.push import memory_of_endpoints
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    many = bench.size(1000, quick=50)
    seconds = bench.size(30, quick=5)
    with bench.database(Postbus()) as url, receiving() as endpoint:
        contenders = (
            Contender(f"{many:,} endpoints", lambda: memory_of_endpoints(url, endpoint.url, many, seconds)),
            Contender("1 endpoint", lambda: memory_of_endpoints(url, endpoint.url, 1, seconds)),
        )
        yield (Comparison("most memory of the process", contenders, (), MEMORY, rounds=3, warm_up=False),)


WORKLOAD = Workload("push_memory", "What memory do a thousand endpoints take?", _prepare)

"""What waiting clients cost the server: the memory of its process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import MEMORY, Comparison, Contender
from benchmarks.http_server import serving
from benchmarks.jobs.http_polls import memory_of_polls
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    many = bench.size(1000, quick=100)
    system = Postbus()
    # Each its own server: memory that was used once is not given back.
    with bench.database(system) as url, serving(url) as crowded, serving(url) as empty:
        system.create_place(url, "quiet")
        contenders = (
            Contender(f"{many:,} long polls", lambda: memory_of_polls(crowded, "quiet", many)),
            Contender("1 long poll", lambda: memory_of_polls(empty, "quiet", 1)),
        )
        yield (Comparison("memory of the process", contenders, (), MEMORY, rounds=3, warm_up=False),)


WORKLOAD = Workload("server_polls", "What does it cost to hold a thousand long polls?", _prepare)

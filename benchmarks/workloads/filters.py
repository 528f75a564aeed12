"""What a filter costs that lets one message of a thousand through: how many are looked at per second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.comparison import Comparison, Contender
from benchmarks.jobs.scan import scan_fresh
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload
from postbus import Filter


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    system = Postbus(consumer_count=0)
    message_count = bench.size(1_000_000, quick=20_000)
    with bench.database(system) as url:
        filters = {
            "by key": Filter(key="wanted.>"),
            "by header": Filter(headers={"wanted": "yes"}),
            "by content": Filter(data="$.id < 0"),
        }
        contenders = tuple(
            Contender(name, partial(scan_fresh, system, url, wanted, message_count)) for name, wanted in filters.items()
        )
        yield (Comparison("1 of 1,000 matches, 1 worker", contenders, (), rounds=3),)


WORKLOAD = Workload("filters", "How fast does a filter find the one message of a thousand?", _prepare)

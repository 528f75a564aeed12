"""How long it takes to let go of many messages. Tables are dropped, so nothing is left to be vacuumed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import LATENCY, Comparison, Contender
from benchmarks.jobs.drops import drop, expire, purge
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(1_000_000, quick=50_000)
    with bench.database(Postbus()) as url:
        contenders = (
            Contender("too old", lambda: expire(url, count)),
            Contender("purged", lambda: purge(url, count)),
            Contender("stream dropped", lambda: drop(url, count)),
        )
        yield (Comparison(f"{count:,} messages", contenders, (), LATENCY, rounds=3, warm_up=False),)


WORKLOAD = Workload("drops", "How long does it take to let go of a million messages?", _prepare)

"""What it costs to see where things stand, in a stream with many messages and many consumers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import postbus
from benchmarks.comparison import LATENCY, Comparison, Contender
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.stats_latency import median_of, move_all
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    message_count = bench.size(10_000_000, quick=100_000)
    consumer_count = bench.size(1_000, quick=50)
    system = Postbus(consumer_count=consumer_count)
    with bench.database(system) as url, fresh_place(system, url) as place:
        fill_in_steps(system, url, place, message_count)
        move_all(url, place)
        settle(url)

        def look(name: str, call: Callable[[postbus.Bus], object]) -> Contender:
            return Contender(name, lambda: median_of(url, call))

        contenders = (
            look("stats of a consumer", lambda bus: bus.consumer(place, "consumer_0").stats()),
            look("overview", lambda bus: bus.overview()),
            look("consumer_overview", lambda bus: bus.consumer_overview(place)),
        )
        name = f"{message_count:,} messages, {consumer_count:,} consumers, p50"
        yield (Comparison(name, contenders, (), LATENCY, rounds=3),)


WORKLOAD = Workload("stats_at_size", "How long does it take to see where a large stream stands?", _prepare)

"""Taking out as fast as others put in: what most workers do most of the time, with nearly nothing waiting."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.jobs.exchange import Exchanged, exchange
from benchmarks.systems import Pgmq, Postbus, PostbusByKey
from benchmarks.systems.base import ExchangingSystem, fresh_place
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    systems: tuple[ExchangingSystem, ...] = (Postbus(), PostbusByKey(), Pgmq())
    seconds = bench.size(10, quick=2)
    with bench.database(*systems) as url:
        yield tuple(_comparison(systems, url, batch_size, seconds) for batch_size in (10, 1))


def _comparison(systems: tuple[ExchangingSystem, ...], url: str, batch_size: int, seconds: int) -> Comparison:
    contenders = tuple(
        Contender(system.name, partial(_exchange, system, url, batch_size, seconds)) for system in systems
    )
    ratios = tuple(Ratio(system.name, Pgmq.name) for system in systems if system.name != Pgmq.name)
    return Comparison(f"put in and taken out by {batch_size}, 2 workers", contenders, ratios, rounds=3, warm_up=False)


def _exchange(system: ExchangingSystem, url: str, batch_size: int, seconds: int) -> Exchanged:
    with fresh_place(system, url) as place:
        return exchange(system, url, place, worker_count=2, batch_size=batch_size, seconds=seconds)


WORKLOAD = Workload("keep_up", "How fast do workers take out what others have just put in?", _prepare)

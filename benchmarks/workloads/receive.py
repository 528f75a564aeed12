"""Receive and ack: what a message costs a worker, in batches and one by one, beside selecting the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import Comparison, Ratio, against_each
from benchmarks.jobs.receive import ReceiveLoad, receive_contenders
from benchmarks.systems import Pgmq, Postbus, PostbusCalls, RawSelect
from benchmarks.systems.base import ConsumingSystem
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    systems: tuple[ConsumingSystem, ...] = (Postbus(), PostbusCalls(), Pgmq(), RawSelect())
    loads = (
        ReceiveLoad(worker_count=2, batch_size=100, message_count=bench.size(300_000, quick=10_000)),
        ReceiveLoad(worker_count=2, batch_size=10, message_count=bench.size(100_000, quick=3_000)),
        ReceiveLoad(worker_count=2, batch_size=1, message_count=bench.size(15_000, quick=500)),
    )
    with bench.database(*systems) as url:
        yield tuple(_comparison(systems, url, load) for load in loads)


def _comparison(systems: tuple[ConsumingSystem, ...], url: str, load: ReceiveLoad) -> Comparison:
    contenders = receive_contenders(systems, url, load)
    ratios = (*against_each(Postbus.name, contenders), Ratio(PostbusCalls.name, Pgmq.name))
    return Comparison(load.name, contenders, ratios)


WORKLOAD = Workload("receive", "How fast do messages come out, received and acked?", _prepare)

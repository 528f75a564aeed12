"""Throughput in bulk: the cost of a message when that of a call is shared by a hundred."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import Comparison, against_each
from benchmarks.jobs.publish import Load, fresh_contenders
from benchmarks.systems import BinaryPgmq, Pgmq, Postbus, RawCopy, RawInsert
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    systems = (Postbus(), Pgmq(), BinaryPgmq(), RawCopy(), RawInsert())
    load = Load(producer_count=2, batch_size=100, message_count=bench.size(100_000, quick=10_000))
    with bench.database(*systems) as url:
        contenders = fresh_contenders(systems, url, load)
        yield (Comparison(load.name, contenders, against_each(Postbus.name, contenders)),)


WORKLOAD = Workload("publish_batches", "How fast do messages go in, a hundred at a time?", _prepare)

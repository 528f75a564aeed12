"""The cost of a call: every message is a round trip and a commit of its own, and commits share their flushes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import Comparison, against_each
from benchmarks.jobs.publish import Load, fresh_contenders
from benchmarks.systems import Pgmq, Postbus, RawInsert
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    systems = (Postbus(), Pgmq(), RawInsert())
    load = Load(producer_count=8, batch_size=1, message_count=bench.size(16_000, quick=1_600))
    with bench.database(*systems) as url:
        contenders = fresh_contenders(systems, url, load)
        yield (Comparison(load.name, contenders, against_each(Postbus.name, contenders)),)


WORKLOAD = Workload("publish_single", "How fast do messages go in, one at a time, from eight producers?", _prepare)

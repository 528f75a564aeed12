"""What keeping messages of a key in order costs, and whether it stays so while somebody holds a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Ratio
from benchmarks.jobs.receive import ReceiveLoad, receive_contenders
from benchmarks.systems import Postbus, PostbusByKey
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.held_snapshot import compare_held

_WORKERS: Final = 4


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    systems = (PostbusByKey(), Postbus())
    load = ReceiveLoad(worker_count=_WORKERS, batch_size=100, message_count=bench.size(100_000, quick=10_000))
    with bench.database(*systems) as url:
        drained = Comparison(
            f"{load.name}, 1,000 keys",
            receive_contenders(systems, url, load),
            (Ratio(PostbusByKey.name, Postbus.name),),
        )
        yield drained, compare_held(bench, PostbusByKey(), rounds=3)


WORKLOAD = Workload("key_order", "What does it cost to keep messages of a key in order?", _prepare)

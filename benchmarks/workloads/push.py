"""How many messages one process pushes to an endpoint that answers at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.endpoint import receiving
from benchmarks.jobs.push import PushLoad, push
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(20_000, quick=2_000)
    loads = {
        "one by one": PushLoad(count),
        "by key": PushLoad(count, order="key"),
        "batches of 100": PushLoad(count, mode="batch", concurrency=5),
    }
    with bench.database(Postbus()) as url, receiving() as endpoint:
        contenders = tuple(
            Contender(name, lambda load=load: push(url, endpoint.url, load))  # type: ignore[misc]
            for name, load in loads.items()
        )
        ratios = (Ratio("by key", "one by one"), Ratio("batches of 100", "one by one"))
        yield (Comparison("one process, signed requests", contenders, ratios),)


WORKLOAD = Workload("push", "How fast does one process push messages to an endpoint?", _prepare)

"""Whether consumers cost publishers anything. They are defined, and nobody receives: a new consumer is a position, not a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.jobs.publish import Load, publish_fresh
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload

_MANY: Final = Postbus(consumer_count=10)
_NONE: Final = Postbus(consumer_count=0)


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    loads = (
        Load(producer_count=2, batch_size=100, message_count=bench.size(100_000, quick=10_000)),
        Load(producer_count=8, batch_size=1, message_count=bench.size(16_000, quick=1_600)),
    )
    with bench.database(_MANY) as url:
        yield tuple(_comparison(url, load) for load in loads)


def _comparison(url: str, load: Load) -> Comparison:
    contenders = (
        Contender("10 consumers", lambda: publish_fresh(_MANY, url, load)),
        Contender("no consumers", lambda: publish_fresh(_NONE, url, load)),
    )
    return Comparison(load.name, contenders, (Ratio("10 consumers", "no consumers"),))


WORKLOAD = Workload("publish_consumers", "Is publishing as fast into a stream with ten consumers?", _prepare)

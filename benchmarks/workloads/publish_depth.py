"""Whether publishing slows down as a stream grows.

The deep stream has one segment, as if maintenance had never run: the largest index that a publisher could meet. With
maintenance it would write to a small, new segment, and the question would be easier.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Contender, Measurement, Ratio
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.publish import Load, publish
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload

_SHALLOW: Final = 1_000
_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    depth = bench.size(10_000_000, quick=200_000)
    loads = (
        Load(producer_count=2, batch_size=100, message_count=bench.size(100_000, quick=10_000)),
        Load(producer_count=8, batch_size=1, message_count=bench.size(16_000, quick=1_600)),
    )
    with bench.database(_system) as url, fresh_place(_system, url) as deep:
        fill_in_steps(_system, url, deep, depth)
        settle(url)
        yield tuple(_comparison(url, deep, depth, load) for load in loads)


def _comparison(url: str, deep: str, depth: int, load: Load) -> Comparison:
    shallow_name, deep_name = f"{_SHALLOW:,} stored", f"{depth:,} stored"
    contenders = (
        Contender(shallow_name, lambda: _publish_shallow(url, load)),
        Contender(deep_name, lambda: publish(_system, url, (deep,), load)),
    )
    return Comparison(load.name, contenders, (Ratio(deep_name, shallow_name),))


def _publish_shallow(url: str, load: Load) -> Measurement:
    """A new stream each round: the last round's would no longer be shallow."""
    with fresh_place(_system, url) as place:
        _system.fill(url, place, _SHALLOW)
        return publish(_system, url, (place,), load)


WORKLOAD = Workload("publish_depth", "Is publishing as fast into a stream that holds ten million messages?", _prepare)

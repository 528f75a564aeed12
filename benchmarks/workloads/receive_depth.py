"""Whether receiving slows down as messages pile up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.receive_at_depth import DepthLoad, receive_at_depth
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload

_SHALLOW: Final = 1_000
_SLICE: Final = 500
_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    depth = bench.size(1_000_000, quick=50_000)
    loads = (
        DepthLoad(batch_size=100, slice_size=_SLICE, slice_count=bench.size(80, quick=4)),
        DepthLoad(batch_size=10, slice_size=_SLICE, slice_count=bench.size(20, quick=2)),
        DepthLoad(batch_size=1, slice_size=_SLICE, slice_count=bench.size(4, quick=1)),
    )
    # Both for all rounds, so that both have the same past.
    with bench.database(_system) as url, fresh_place(_system, url) as shallow, fresh_place(_system, url) as deep:
        fill_in_steps(_system, url, shallow, _SHALLOW)
        fill_in_steps(_system, url, deep, depth)
        settle(url)
        yield tuple(_comparison(url, shallow, deep, depth, load) for load in loads)


def _comparison(url: str, shallow: str, deep: str, depth: int, load: DepthLoad) -> Comparison:
    shallow_name, deep_name = f"{_SHALLOW:,} waiting", f"{depth:,} waiting"
    contenders = (
        Contender(shallow_name, lambda: receive_at_depth(_system, url, shallow, load)),
        Contender(deep_name, lambda: receive_at_depth(_system, url, deep, load)),
    )
    return Comparison(load.name, contenders, (Ratio(deep_name, shallow_name),))


WORKLOAD = Workload("receive_depth", "Is receiving as fast when a million messages wait?", _prepare)

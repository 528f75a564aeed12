"""What priorities cost a stream that has none, one that has, and the messages of the default level while others wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.receive_at_depth import DepthLoad, receive_at_depth
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.systems.levels import WAITING, PostbusWithLevels
from benchmarks.workloads.base import Bench, Workload

_DEPTH: Final = 20_000
_SLICE: Final = 500


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(1_000_000, quick=10_000)
    loads = (
        DepthLoad(batch_size=100, slice_size=_SLICE, slice_count=bench.size(40, quick=4)),
        DepthLoad(batch_size=1, slice_size=_SLICE, slice_count=bench.size(4, quick=1)),
    )
    systems: tuple[Postbus, ...] = (
        Postbus(),
        *(PostbusWithLevels(waiting, 0 if waiting == "nothing" else count) for waiting in WAITING),
    )
    with bench.database(systems[0]) as url, ExitStack() as stack:
        places = [stack.enter_context(fresh_place(system, url)) for system in systems]
        for system, place in zip(systems, places, strict=True):
            fill_in_steps(system, url, place, bench.size(_DEPTH, quick=2_000))
        settle(url)
        yield tuple(_comparison(url, systems, places, load) for load in loads)


def _comparison(url: str, systems: tuple[Postbus, ...], places: list[str], load: DepthLoad) -> Comparison:
    contenders = tuple(
        Contender(system.name, lambda system=system, place=place: receive_at_depth(system, url, place, load))  # type: ignore[misc]
        for system, place in zip(systems, places, strict=True)
    )
    without, plain, *others = (system.name for system in systems)
    ratios = (Ratio(plain, without), *(Ratio(name, plain) for name in others))
    return Comparison(f"{load.name}, default level", contenders, ratios)


WORKLOAD = Workload("levels", "What do priorities cost, and does it matter what waits at other levels?", _prepare)

"""What consumers cost that wait and get nothing. They poll for 20 s at a time, and begin anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import CPU, Comparison, Contender
from benchmarks.jobs.idle import idle
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload

_MANY: Final = 100


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    single, crowd = Postbus(), Postbus(consumer_count=_MANY)
    places = tuple(f"idle_{number}" for number in range(_MANY))
    # Twice as long as a poll.
    seconds = bench.size(40, quick=5)
    with bench.database(single) as url:
        single.create_places(url, places)
        crowd.create_place(url, "crowd")
        settle(url)
        contenders = (
            Contender(f"{_MANY} consumers of a stream", lambda: idle(crowd, url, ["crowd"], seconds=seconds)),
            Contender(f"{_MANY} streams' consumers", lambda: idle(single, url, places, seconds=seconds)),
            Contender("1 consumer", lambda: idle(single, url, places[:1], seconds=seconds)),
        )
        yield (Comparison(f"{seconds} s in long poll", contenders, (), CPU, rounds=3, warm_up=False),)


WORKLOAD = Workload("idle", "What do a hundred consumers cost that wait for nothing?", _prepare)

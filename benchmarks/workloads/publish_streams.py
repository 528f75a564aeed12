"""Whether publishing slows down as a database fills with streams, each of which brings tables and sequences of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Contender, Measurement, Ratio
from benchmarks.jobs.publish import Load, publish
from benchmarks.progress import say
from benchmarks.server import settle
from benchmarks.systems import Postbus, RawInsert
from benchmarks.systems.base import PublishingSystem, fresh_place
from benchmarks.workloads.base import Bench, Workload

_system: Final = Postbus()
_raw: Final = RawInsert()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    stream_count = bench.size(1_000, quick=100)
    loads = (
        Load(producer_count=2, batch_size=100, message_count=bench.size(100_000, quick=10_000)),
        Load(producer_count=8, batch_size=1, message_count=bench.size(16_000, quick=1_600)),
    )
    with (
        bench.database(_system) as lonely_url,
        bench.database(_system) as crowded_url,
        bench.database(_raw) as raw_url,
    ):
        # One fewer: each round adds a stream of its own.
        others = tuple(f"other_{number}" for number in range(stream_count - 1))
        say(f"creating {len(others):,} streams, and as many tables")
        _system.create_places(crowded_url, others)
        _raw.create_places(raw_url, others)
        settle(crowded_url)
        settle(raw_url)
        yield tuple(_comparison(lonely_url, crowded_url, raw_url, others, load) for load in loads)


def _comparison(lonely_url: str, crowded_url: str, raw_url: str, others: tuple[str, ...], load: Load) -> Comparison:
    many = f"{len(others) + 1:,}"
    lonely, into_one, into_all = "1 stream", f"{many} streams, into one", f"{many} streams, into all"
    raw_one, raw_all = "raw, into one table", f"raw, into {many} tables"
    contenders = (
        Contender(into_one, lambda: _publish(_system, crowded_url, (), load)),
        Contender(into_all, lambda: _publish(_system, crowded_url, others, load)),
        Contender(lonely, lambda: _publish(_system, lonely_url, (), load)),
        Contender(raw_one, lambda: _publish(_raw, raw_url, (), load)),
        Contender(raw_all, lambda: _publish(_raw, raw_url, others, load)),
    )
    ratios = (Ratio(into_one, lonely), Ratio(into_all, lonely), Ratio(raw_all, raw_one))
    return Comparison(load.name, contenders, ratios)


def _publish(system: PublishingSystem, url: str, others: tuple[str, ...], load: Load) -> Measurement:
    with fresh_place(system, url) as place:
        return publish(system, url, (place, *others), load)


WORKLOAD = Workload("publish_streams", "Is publishing as fast in a database with a thousand streams?", _prepare)

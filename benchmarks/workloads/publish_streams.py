"""Whether publishing slows down as a database fills with streams, each of which brings tables and sequences of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Contender, Measurement, against_each
from benchmarks.jobs.publish import Load, publish
from benchmarks.progress import say
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload

_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    stream_count = bench.size(1_000, quick=100)
    loads = (
        Load(producer_count=2, batch_size=100, message_count=bench.size(100_000, quick=10_000)),
        Load(producer_count=8, batch_size=1, message_count=bench.size(16_000, quick=1_600)),
    )
    with bench.database(_system) as lonely_url, bench.database(_system) as crowded_url:
        # One fewer: each round adds a stream of its own.
        others = tuple(f"other_{number}" for number in range(stream_count - 1))
        say(f"creating {len(others):,} streams")
        _system.create_places(crowded_url, others)
        settle(crowded_url)
        yield tuple(_comparison(lonely_url, crowded_url, others, load) for load in loads)


def _comparison(lonely_url: str, crowded_url: str, others: tuple[str, ...], load: Load) -> Comparison:
    lonely, crowded = "1 stream", f"{len(others) + 1:,} streams"
    contenders = (
        Contender(f"{crowded}, into one", lambda: _publish(crowded_url, (), load)),
        Contender(f"{crowded}, into all", lambda: _publish(crowded_url, others, load)),
        Contender(lonely, lambda: _publish(lonely_url, (), load)),
    )
    ratios = tuple(
        ratio for contender in contenders for ratio in against_each(contender.name, contenders) if ratio.under == lonely
    )
    return Comparison(load.name, contenders, ratios)


def _publish(url: str, others: tuple[str, ...], load: Load) -> Measurement:
    with fresh_place(_system, url) as place:
        return publish(_system, url, (place, *others), load)


WORKLOAD = Workload("publish_streams", "Is publishing as fast in a database with a thousand streams?", _prepare)

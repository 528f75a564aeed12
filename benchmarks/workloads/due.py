"""Whether messages come at their time: one now and then, and ten thousand at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import LATENCY, Comparison, Contender
from benchmarks.jobs.due import Lateness, lateness_of
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    single, together = bench.size(300, quick=30), bench.size(10_000, quick=500)
    with bench.database(Postbus()) as url:
        yield (
            _comparison(url, f"{single} messages, 10 per second", single, spread=single / 10),
            _comparison(url, f"{together:,} messages due at once", together, spread=0),
        )


def _comparison(url: str, name: str, count: int, *, spread: float) -> Comparison:
    def once() -> Lateness:
        with fresh_place(Postbus(), url) as place:
            return lateness_of(url, place, "consumer_0", count, spread=spread)

    return Comparison(f"{name}: how late", (Contender("postbus", once),), (), LATENCY, rounds=3, warm_up=False)


WORKLOAD = Workload("due", "How late does a message come that is due at a time?", _prepare)

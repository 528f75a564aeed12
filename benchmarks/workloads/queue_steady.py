"""What a queue takes on disk that is used all the time: does it stay as it is, or grow?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import MEMORY, Comparison, Contender, Ratio
from benchmarks.jobs.steady_queue import Sizes, Steady, sizes_of_queue
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload

_RATE: Final = 2_000


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    steady = Steady(_RATE, bench.size(300, quick=10))
    contender = Contender("queue", lambda: _measure(bench, steady))
    ratios = (Ratio(f"queue, after {steady.seconds} s", f"queue, after {steady.seconds // 5} s"),)
    name = f"{_RATE:,} messages per second, tables and indexes"
    yield (Comparison(name, (contender,), ratios, MEMORY, rounds=1, warm_up=False),)


def _measure(bench: Bench, steady: Steady) -> Sizes:
    """A new database each round: what it takes is that of the one queue in it."""
    with bench.database(Postbus()) as url:
        return sizes_of_queue(url, steady)


WORKLOAD = Workload("queue_steady", "How large is a queue on disk while it is used all the time?", _prepare)

"""What a worker who waits is worth: how soon he has a message, when there are few.

pgmq waits in the server, in `read_with_poll` with the interval that it has by default, 100 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import LATENCY, Comparison, Contender, Ratio
from benchmarks.jobs.latency import Pace, latencies_of
from benchmarks.systems import Pgmq, Postbus
from benchmarks.systems.base import PollingSystem
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    postbus, pgmq = Postbus(), Pgmq()
    pace = Pace(message_count=bench.size(600, quick=50), rate=10)
    with bench.database(postbus, pgmq) as url:
        contenders = (_contender(postbus, url, pace), _contender(pgmq, url, pace))
        ratios = tuple(Ratio(*(each.label(figure) for each in contenders)) for figure in ("p50", "p95", "p99"))
        name = f"{pace.message_count} messages, {pace.rate:.0f} per second"
        yield (Comparison(name, contenders, ratios, LATENCY, rounds=3, warm_up=False),)


def _contender(system: PollingSystem, url: str, pace: Pace) -> Contender:
    return Contender(system.name, lambda: latencies_of(system, url, pace))


WORKLOAD = Workload("latency", "How long does a message take to a worker who waits for it?", _prepare)

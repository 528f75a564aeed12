"""Changes of tables as messages, beside pg_recvlogical that writes the same log to a file; existing rows; memory; delay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.comparison import LATENCY, MEMORY, Comparison, Contender, Measurement, Ratio
from benchmarks.jobs import sources
from benchmarks.systems import Postbus
from benchmarks.workloads.base import Bench, Workload


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    changes = bench.size(200_000, quick=8_000)
    rows = bench.size(500_000, quick=8_000)
    large = bench.size(1_000_000, quick=30_000)
    with bench.database(Postbus()) as url:
        log = (
            Contender("Postbus source", partial(sources.read_log, url, changes)),
            Contender("pg_recvlogical to a file", partial(sources.receive_log, url, changes)),
        )
        yield (
            Comparison(
                f"{changes:,} updates by fours", log, (Ratio(log[0].name, log[1].name),), rounds=3, warm_up=False
            ),
            _alone(f"backfill of {rows:,} rows", partial(sources.backfill, url, rows)),
            Comparison(
                f"memory during a transaction of {large:,} rows",
                (Contender("Postbus source", partial(sources.memory, url, large)),),
                (),
                MEMORY,
                rounds=1,
                warm_up=False,
            ),
            Comparison(
                "from the change to its receive, median at 100 changes/s",
                (Contender("Postbus source", partial(sources.delay, url, bench.size(1_000, quick=50), 100)),),
                (),
                LATENCY,
                rounds=3,
                warm_up=False,
            ),
        )


def _alone(name: str, measure: partial[Measurement]) -> Comparison:
    return Comparison(name, (Contender("Postbus source", measure),), (), rounds=3, warm_up=False)


WORKLOAD = Workload("source", "How fast do changes of tables become messages?", _prepare)

"""Whether a bus runs on at its speed while somebody holds a snapshot: a report, a dump, a forgotten transaction.

As long as it is held, Postgres can clear away no row that was deleted or changed since. A queue that lives by deleting and
updating rows reads over more and more of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

import psycopg

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.jobs.exchange import Exchanged, exchange
from benchmarks.server import settle
from benchmarks.systems import Pgmq, Postbus, PostbusSingleAcks
from benchmarks.systems.base import ExchangingSystem, fresh_place
from benchmarks.workloads.base import Bench, Workload

_WORKERS: Final = 2
_BATCH_SIZE: Final = 10


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    # Rounds are as long as the hold: with these numbers all of them take 14 minutes.
    yield (
        compare_held(bench, Postbus(), rounds=3),
        compare_held(bench, PostbusSingleAcks(), rounds=3),
        compare_held(bench, Pgmq(), rounds=1),
    )


def compare_held(bench: Bench, system: ExchangingSystem, *, rounds: int) -> Comparison:
    """Publish, receive and ack for a time, with a snapshot held and without."""
    contenders = (
        Contender("held", lambda: _exchange(bench, system, held=True)),
        Contender("free", lambda: _exchange(bench, system, held=False)),
    )
    ratios = (
        Ratio("held", "free"),
        *(Ratio(each.label("last quarter"), each.label("first quarter")) for each in contenders),
    )
    name = f"{system.name}, by {_BATCH_SIZE}, {_WORKERS} workers, {_seconds(bench)} s"
    return Comparison(name, contenders, ratios, rounds=rounds, warm_up=False)


def _exchange(bench: Bench, system: ExchangingSystem, *, held: bool) -> Exchanged:
    """One round in a new database: what a held snapshot leaves behind in tables that streams share must not slow the next."""
    with bench.database(system) as url, fresh_place(system, url) as place:
        settle(url)
        with _held_snapshot(url) if held else nullcontext():
            return exchange(system, url, place, worker_count=_WORKERS, batch_size=_BATCH_SIZE, seconds=_seconds(bench))


@contextmanager
def _held_snapshot(url: str) -> Iterator[None]:
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        # The first statement takes the snapshot, which the transaction keeps.
        connection.execute("select 1")
        yield


def _seconds(bench: Bench) -> int:
    return bench.size(60, quick=5)


WORKLOAD = Workload("held_snapshot", "Does it run on at its speed while somebody holds a snapshot?", _prepare)

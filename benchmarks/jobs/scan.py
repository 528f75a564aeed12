"""Receiving rare messages: a filter that lets one message of many through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psycopg

import postbus
from benchmarks.comparison import Measurement
from benchmarks.messages import SQL_DATA
from benchmarks.processes import run_jobs
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place

RARE: Final = 1000
# Every thousandth message is wanted, by its key, a header and its content.
_FILL: Final = f"""
select count(postbus.publish_many(%s, batch.keys, batch.data, batch.headers))
from (
    select
        array_agg(case when mod(i, {RARE}) = 0 then 'wanted.k' else 'orders.k' || mod(i, 999) end) as keys,
        array_agg(case when mod(i, {RARE}) = 0 then '{{"id":-1}}' else {SQL_DATA} end) as data,
        array_agg(case when mod(i, {RARE}) = 0 then '{{"wanted":"yes"}}'::jsonb else '{{"wanted":"no"}}' end) as headers
    from generate_series(0, %s - 1) as i
    group by i / 10000
) as batch
"""


@dataclass(frozen=True, slots=True)
class ScanJob:
    url: str
    place: str
    wanted_count: int

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        with postbus.connect(self.url) as bus:
            consumer = bus.consumer(self.place, "rare")
            consumer.stats()

            def work() -> int:
                """Receive all that are wanted: the scan of everything before the last of them."""
                received = 0
                while received < self.wanted_count:
                    batch = consumer.receive(100, wait=5)
                    received += len(batch)
                    consumer.ack(batch)
                return received

            yield work


def scan_fresh(system: Postbus, url: str, wanted: postbus.Filter, message_count: int) -> Measurement:
    """One round: how many messages are looked at per second."""
    with fresh_place(system, url) as place:
        with postbus.connect(url) as bus:
            bus.create_consumer(place, "rare", order="none", filter=wanted)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_FILL.encode(), (place, message_count))
        [span] = run_jobs([ScanJob(url, place, message_count // RARE)])
        return Measurement(message_count, span.ended_at - span.started_at)

"""A report on a stream and a consumer that has acked all of it: its time, and the memory of all that works for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import MEMORY, Comparison, Contender
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.reports import ack_all, memory_of_report, report_all
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.on_spark import spark_and_database

_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(10_000_000, quick=20_000)
    with (
        spark_and_database(bench) as (spark, url),
        fresh_place(_system, url) as bare,
        fresh_place(_system, url) as acked,
    ):
        for stream in (bare, acked):
            fill_in_steps(_system, url, stream, count)
        ack_all(url, acked, count)
        settle(url)
        speed = (
            Contender("messages only", lambda: report_all(spark, url, bare, count)),
            Contender("with a history", lambda: report_all(spark, url, acked, count)),
        )
        memory = (Contender("with a history", lambda: memory_of_report(spark, url, acked, count)),)
        yield (
            Comparison(f"report on {count:,} messages", speed, (), rounds=3),
            Comparison(f"memory of Spark, report on {count:,}", memory, (), MEMORY, rounds=1, warm_up=False),
        )


WORKLOAD = Workload("spark_report", "How fast is a report, and how much memory does it take?", _prepare)

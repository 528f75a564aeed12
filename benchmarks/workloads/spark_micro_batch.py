"""What a streaming query adds to the same work done as a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import TIME, Comparison, Contender, Ratio
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.spark import copy_batch, copy_micro_batch
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.on_spark import spark_and_database

_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(100_000, quick=5_000)
    with (
        spark_and_database(bench) as (spark, url),
        fresh_place(_system, url) as stream,
    ):
        fill_in_steps(_system, url, stream, count)
        settle(url)
        contenders = (
            Contender("micro-batch", lambda: copy_micro_batch(spark, url, stream, count)),
            Contender("batch", lambda: copy_batch(spark, url, stream, count)),
        )
        yield (
            Comparison(
                f"{count:,} messages read, changed, written", contenders, (Ratio("micro-batch", "batch"),), TIME
            ),
        )


WORKLOAD = Workload("spark_micro_batch", "How much longer than a batch does a micro-batch take, end to end?", _prepare)

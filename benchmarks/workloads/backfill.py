"""A table published by the pipeline, and by a loop in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.jobs.backfill import by_loop, by_pipeline, fill_table
from benchmarks.server import settle
from benchmarks.systems.spark import CORES
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.on_spark import spark_and_database


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(1_000_000, quick=20_000)
    with spark_and_database(bench) as (spark, url):
        fill_table(url, count)
        settle(url)
        contenders = (
            Contender("backfill", lambda: by_pipeline(spark, url, count)),
            Contender("one process", lambda: by_loop(url, count)),
        )
        yield (Comparison(f"{count:,} rows, {CORES} tasks", contenders, (Ratio("backfill", "one process"),)),)


WORKLOAD = Workload(
    "backfill", "How fast is a table published by parallel ranges, beside a loop in one process?", _prepare
)

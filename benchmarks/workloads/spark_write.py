"""A DataFrame published to a stream, and appended to a table by Spark's own JDBC source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.jobs.spark import write_jdbc, write_stream
from benchmarks.systems.spark import CORES
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.on_spark import spark_and_database


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(1_000_000, quick=20_000)
    with spark_and_database(bench, jdbc=True) as (spark, url):
        contenders = (
            Contender("postbus", lambda: write_stream(spark, url, count)),
            Contender("jdbc", lambda: write_jdbc(spark, url, count)),
        )
        yield (Comparison(f"{count:,} messages, {CORES} tasks", contenders, (Ratio("postbus", "jdbc"),)),)


WORKLOAD = Workload(
    "spark_write", "How fast is a DataFrame published, all or nothing, beside a JDBC append to a table?", _prepare
)

"""A stream read into Spark by our data source, and the same rows by Spark's own JDBC source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.spark import jdbc_frame, read_all, stream_frame
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.systems.spark import log_of
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.on_spark import spark_and_database

_TASKS: Final = (2, 4)
_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(1_000_000, quick=20_000)
    with (
        spark_and_database(bench, jdbc=True) as (spark, url),
        fresh_place(_system, url) as stream,
    ):
        fill_in_steps(_system, url, stream, count)
        settle(url)
        table = log_of(url, stream)

        def comparison(tasks: int) -> Comparison:
            # More tasks than asked for would be made of a large stream: both sides get as many.
            tasks = stream_frame(spark, url, stream, tasks).rdd.getNumPartitions()
            contenders = (
                Contender("postbus", lambda: read_all(stream_frame(spark, url, stream, tasks), count)),
                Contender("jdbc", lambda: read_all(jdbc_frame(spark, url, table, count, tasks), count)),
            )
            return Comparison(f"{count:,} messages, {tasks} tasks", contenders, (Ratio("postbus", "jdbc"),))

        yield tuple({each.name: each for each in map(comparison, _TASKS)}.values())


WORKLOAD = Workload("spark_read", "How fast is a stream read into Spark, beside the same rows by JDBC?", _prepare)

"""A stream transformed into another by the pipeline, beside reading one and beside writing one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.spark import read_all, stream_frame, transform_stream, write_stream
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.on_spark import spark_and_database

_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(1_000_000, quick=20_000)
    with (
        spark_and_database(bench) as (spark, url),
        fresh_place(_system, url) as stream,
    ):
        fill_in_steps(_system, url, stream, count)
        settle(url)
        contenders = (
            Contender("transform", lambda: transform_stream(spark, url, stream, count)),
            Contender("batch read", lambda: read_all(stream_frame(spark, url, stream, 1), count)),
            Contender("batch write", lambda: write_stream(spark, url, count)),
        )
        ratios = (Ratio("transform", "batch read"), Ratio("transform", "batch write"))
        yield (Comparison(f"{count:,} messages parsed, filtered, keyed anew", contenders, ratios),)


WORKLOAD = Workload("spark_transform", "How fast does a pipeline make a stream of a stream?", _prepare)

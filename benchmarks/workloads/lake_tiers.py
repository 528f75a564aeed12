"""Lake and log read as one stream, beside the files by Spark itself and the log by us."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.lake import drop_archived, lake, read_apart, read_tiers
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.on_spark import spark_and_database
from postbus.pipelines import ArchiveOptions, archive_stream

_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    archived, live = bench.size(1_000_000, quick=20_000), bench.size(100_000, quick=5_000)
    with (
        spark_and_database(bench) as (spark, url),
        fresh_place(_system, url) as stream,
        lake() as folder,
    ):
        fill_in_steps(_system, url, stream, archived)
        archive_stream(url, ArchiveOptions(stream=stream, to=str(folder)), spark=spark)
        drop_archived(url, stream, archived)
        fill_in_steps(_system, url, stream, live)
        settle(url)
        contenders = (
            Contender("one stream", lambda: read_tiers(spark, url, stream, archived + live)),
            Contender("Parquet, then log", lambda: read_apart(spark, url, stream, folder, archived, live)),
        )
        name = f"{archived:,} archived, {live:,} live"
        yield (Comparison(name, contenders, (Ratio("one stream", "Parquet, then log"),)),)


WORKLOAD = Workload("lake_tiers", "What does it cost to read lake and log as one stream?", _prepare)

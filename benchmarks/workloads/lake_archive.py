"""Archiving a stream, beside only reading it; and what its messages take in files and in Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import MEMORY, Comparison, Contender, Ratio
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.lake import archive_all, fill_with_noise, lake, megabytes_in_postgres, megabytes_of_files
from benchmarks.jobs.spark import read_all, stream_frame
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.on_spark import spark_and_database
from postbus.pipelines import ArchiveOptions, archive_stream

_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(1_000_000, quick=20_000)
    with (
        spark_and_database(bench) as (spark, url),
        fresh_place(_system, url) as stream,
        fresh_place(_system, url) as kept,
        lake() as folder,
    ):
        fill_in_steps(_system, url, stream, count)
        fill_with_noise(url, kept, count)
        settle(url)
        archive_stream(url, ArchiveOptions(stream=kept, to=str(folder)), spark=spark)
        speed = (
            Contender("archive", lambda: archive_all(spark, url, stream, count)),
            Contender("batch read", lambda: read_all(stream_frame(spark, url, stream, 1), count)),
        )
        sizes = (
            Contender("files", lambda: megabytes_of_files(folder)),
            Contender("Postgres", lambda: megabytes_in_postgres(url, kept)),
        )
        yield (
            Comparison(f"{count:,} messages archived", speed, (Ratio("archive", "batch read"),)),
            Comparison(
                f"{count:,} messages on disk", sizes, (Ratio("files", "Postgres"),), MEMORY, rounds=1, warm_up=False
            ),
        )


WORKLOAD = Workload("lake_archive", "How fast is a stream archived, and how small does it become?", _prepare)

"""A table published by the pipeline, and by a loop in one process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks import server
from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.jobs.backfill import by_loop, by_pipeline, fill_table
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.spark import CORES, session
from benchmarks.workloads.base import Bench, Workload

_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(1_000_000, quick=20_000)
    with (
        session() as spark,
        server.over_tcp(bench.server_url) as server_url,
        server.database(server_url, _system) as url,
    ):
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

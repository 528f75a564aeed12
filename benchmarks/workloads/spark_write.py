"""A DataFrame published to a stream, and appended to a table by Spark's own JDBC source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks import server
from benchmarks.comparison import Comparison, Contender, Ratio
from benchmarks.jobs.spark import write_jdbc, write_stream
from benchmarks.systems import Postbus
from benchmarks.systems.spark import CORES, session
from benchmarks.workloads.base import Bench, Workload

_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    count = bench.size(1_000_000, quick=20_000)
    with (
        session(jdbc=True) as spark,
        server.over_tcp(bench.server_url) as server_url,
        server.database(server_url, _system) as url,
    ):
        contenders = (
            Contender("postbus", lambda: write_stream(spark, url, count)),
            Contender("jdbc", lambda: write_jdbc(spark, url, count)),
        )
        yield (Comparison(f"{count:,} messages, {CORES} tasks", contenders, (Ratio("postbus", "jdbc"),)),)


WORKLOAD = Workload(
    "spark_write", "How fast is a DataFrame published, all or nothing, beside a JDBC append to a table?", _prepare
)

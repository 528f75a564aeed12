"""The memory of a task, whatever the range."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.comparison import MEMORY, Comparison, Contender, Ratio
from benchmarks.fill import fill_in_steps
from benchmarks.jobs.spark import peak_memory, read_all, stream_frame, write_stream
from benchmarks.server import settle
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.workloads.base import Bench, Workload
from benchmarks.workloads.on_spark import spark_and_database

_system: Final = Postbus()


@contextmanager
def _prepare(bench: Bench) -> Iterator[tuple[Comparison, ...]]:
    few, many = bench.size(100_000, quick=5_000), bench.size(1_000_000, quick=20_000)
    with (
        # A process that is used again remembers its largest task.
        spark_and_database(bench, settings={"spark.python.worker.reuse": "false"}) as (spark, url),
        fresh_place(_system, url) as small,
        fresh_place(_system, url) as large,
    ):
        fill_in_steps(_system, url, small, few)
        fill_in_steps(_system, url, large, many)
        settle(url)

        def reading(stream: str, count: int) -> Contender:
            frame = stream_frame(spark, url, stream, 1)
            return Contender(f"read {count:,}", lambda: peak_memory(lambda: read_all(frame, count)))

        def writing(count: int) -> Contender:
            return Contender(f"write {count:,}", lambda: peak_memory(lambda: write_stream(spark, url, count)))

        contenders = (reading(small, few), reading(large, many), writing(few), writing(many))
        ratios = tuple(Ratio(f"{what} {many:,}", f"{what} {few:,}") for what in ("read", "write"))
        yield (Comparison("largest Python process of a task", contenders, ratios, MEMORY, rounds=3, warm_up=False),)


WORKLOAD = Workload("spark_memory", "How much memory does a task take, whatever it reads or writes?", _prepare)

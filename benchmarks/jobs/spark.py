"""One round each of what Spark does with streams."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.comparison import Measurement, Single
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place
from benchmarks.systems.spark import count_rows, jdbc_options, numbered, renew_target

_COLUMNS: Final = "key, data::text as data, headers::text as headers, partition, seq, published_at"
_SAMPLE_SECONDS: Final = 0.02
_system: Final = Postbus()


def timed(work: Callable[[], object]) -> float:
    started_at = time.monotonic()
    work()
    return time.monotonic() - started_at


def stream_frame(spark: Any, url: str, stream: str, tasks: int) -> Any:
    return spark.read.format("postbus").options(url=url, stream=stream, minPartitions=tasks).load()


def jdbc_frame(spark: Any, url: str, table: str, count: int, tasks: int) -> Any:
    bounds = {"partitionColumn": "seq", "lowerBound": 1, "upperBound": count + 1, "numPartitions": tasks}
    query = f"(select {_COLUMNS} from {table}) as m"
    return spark.read.format("jdbc").options(**jdbc_options(url), **bounds, dbtable=query).load()


def read_all(frame: Any, count: int) -> Measurement:
    """All columns of all rows, into nothing."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count as rows
    from pyspark.sql.functions import lit

    seen = Observation()
    observed = frame.observe(seen, rows(lit(1)).alias("rows"))
    seconds = timed(lambda: observed.write.format("noop").mode("overwrite").save())
    if seen.get["rows"] != count:
        raise RuntimeError(f"there are {count} messages, and {seen.get['rows']} were read")
    return Measurement(count, seconds)


def write_stream(spark: Any, url: str, count: int) -> Measurement:
    with fresh_place(_system, url) as place:
        writer = numbered(spark, count).write.format("postbus").options(url=url, stream=place).mode("append")
        return _checked(timed(writer.save), count, _system.count(url, place))


def write_jdbc(spark: Any, url: str, count: int) -> Measurement:
    table = renew_target(url)
    writer = numbered(spark, count).write.format("jdbc").options(**jdbc_options(url), dbtable=table).mode("append")
    return _checked(timed(writer.save), count, count_rows(url, table))


def copy_batch(spark: Any, url: str, stream: str, count: int) -> Single:
    with fresh_place(_system, url) as place:
        writer = _transformed(spark.read, url, stream).write.format("postbus").options(url=url, stream=place)
        seconds = timed(writer.mode("append").save)
        _checked(seconds, count, _system.count(url, place))
    return Single(seconds)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One round: how long the micro-batch took, and the query that was started for it alone."""

    seconds: float
    query_seconds: float

    @property
    def figures(self) -> Mapping[str, float]:
        return {"": self.seconds, "with start and end of its query": self.query_seconds}


def copy_micro_batch(spark: Any, url: str, stream: str, count: int) -> MicroBatch:
    """From the start of a query to its end, with one micro-batch between, whose duration is what Spark says of it."""
    with fresh_place(_system, url) as place, tempfile.TemporaryDirectory() as checkpoint:
        writer = _transformed(spark.readStream, url, stream).writeStream.format("postbus")
        writer = writer.options(url=url, stream=place, checkpointLocation=checkpoint).trigger(availableNow=True)
        started_at = time.monotonic()
        query = writer.start()
        query.awaitTermination()
        seconds = time.monotonic() - started_at
        _checked(seconds, count, _system.count(url, place))
        (batch,) = (progress for progress in query.recentProgress if progress["numInputRows"])
    return MicroBatch(batch["durationMs"]["triggerExecution"] / 1000, seconds)


def transform_stream(spark: Any, url: str, stream: str, count: int) -> Measurement:
    """Parse, leave out one of ten, key anew; the rate is that of the messages read."""
    from postbus.pipelines import TransformOptions, transform_streams

    sql = f"select concat('ids.', data.id % 500) as key, data from `{stream}` where data.id % 10 <> 0"
    with fresh_place(_system, url) as place, tempfile.TemporaryDirectory() as checkpoint:
        options = TransformOptions(
            stream=stream, into=place, sql=sql, data_schema="id BIGINT, x STRING", checkpoint=checkpoint
        )
        seconds = timed(lambda: transform_streams(url, options, spark=spark))
        left = count - -(-count // 10)
        _checked(seconds, left, _system.count(url, place))
    return Measurement(count, seconds)


def _transformed(reader: Any, url: str, stream: str) -> Any:
    frame = reader.format("postbus").options(url=url, stream=stream).load()
    return frame.selectExpr("key", "concat('{\"of\":', data, '}') as data")


def _checked(seconds: float, count: int, found: int) -> Measurement:
    if found != count:
        raise RuntimeError(f"{count} messages were written, and {found} are there")
    return Measurement(count, seconds)


def peak_memory(work: Callable[[], object]) -> Single:
    """The most memory that a Python process of Spark's tasks took at any moment, in MB."""
    peak, done = 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(_SAMPLE_SECONDS):
            peak = max([peak, *_worker_sizes()])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return Single(peak)


def _worker_sizes() -> list[float]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, StopIteration):
            if b"pyspark.daemon" in (process / "cmdline").read_bytes().split(b"\0"):
                lines = (process / "status").read_text().splitlines()
                line = next(each for each in lines if each.startswith("VmRSS"))
                found.append(int(line.split()[1]) * 1024 / 1e6)
    return found

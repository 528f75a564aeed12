"""One round each of a report."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import postbus
from benchmarks.comparison import Measurement, Single
from benchmarks.jobs.spark import timed
from postbus.pipelines import Report, ReportOptions, report_streams

_BATCH: Final = 10_000
_SAMPLE_SECONDS: Final = 0.1


def ack_all(url: str, stream: str, count: int) -> None:
    """A consumer that keeps a history takes all messages of a stream, in batches."""
    with postbus.connect(url) as bus:
        consumer = bus.create_consumer(stream, "reported", keep_history=86400, order="none", max_ack_pending=100_000)
        done = 0
        while batch := consumer.receive(max_messages=_BATCH):
            done += consumer.ack(batch)
    if done != count:
        raise RuntimeError(f"there are {count} messages, and {done} were acked")


def report_all(spark: Any, url: str, stream: str, count: int) -> Measurement:
    found: list[Report | None] = []
    options = ReportOptions(streams=(stream,), out=None)
    seconds = timed(lambda: found.append(report_streams(url, options, spark=spark)))
    if found[0] is None or found[0].messages != count:
        raise RuntimeError(f"there are {count} messages, and the report has others: {found}")
    return Measurement(count, seconds)


def memory_of_report(spark: Any, url: str, stream: str, count: int) -> Single:
    """The most memory that Spark's Java and all its Python processes took together at any moment, in MB."""
    peak, done = 0.0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(_SAMPLE_SECONDS):
            peak = max(peak, _sizes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        report_all(spark, url, stream, count)
    finally:
        done.set()
        watcher.join()
    return Single(peak)


def _sizes() -> float:
    """Of the Spark of this process, and of no other on the machine. Pages that processes share count for each."""
    found: dict[int, tuple[int, float]] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, KeyError):
            command = (process / "cmdline").read_bytes().split(b"\0")
            if not {b"pyspark.daemon", b"org.apache.spark.deploy.SparkSubmit"} & set(command):
                continue
            lines = (line.split(":", 1) for line in (process / "status").read_text().splitlines())
            status = {name: value.split() for name, value in lines}
            found[int(process.name)] = (int(status["PPid"][0]), int(status["VmRSS"][0]) * 1024 / 1e6)
    return sum(size for number, (_, size) in found.items() if _is_ours(number, found))


def _is_ours(number: int, found: dict[int, tuple[int, float]]) -> bool:
    while number in found:
        number = found[number][0]
    return number == os.getpid()

"""Runs a report: stream by stream, and writes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from postbus.db import session
from postbus.operations import streams
from postbus.pipelines.report.deliveries import measure_deliveries
from postbus.pipelines.report.facts import ConsumerFacts, Report, StreamFacts
from postbus.pipelines.report.forecast import forecast
from postbus.pipelines.report.measure import knows_unread, measure_dead, measure_traffic
from postbus.pipelines.report.options import ReportOptions
from postbus.pipelines.report.page import page
from postbus.pipelines.report.tables import make_folder, write_tables
from postbus.pipelines.report.window import look_at
from postbus.pipelines.runtime import spark_session
from postbus.pipelines.runtime.failures import is_of_spark
from postbus.pipelines.runtime.progress import Show
from postbus.pipelines.runtime.run import Run, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_SECONDS: Final = 0.2


def report_streams(url: str, options: ReportOptions, *, spark: SparkSession, show: Show | None = None) -> Report | None:
    """Report on streams: into a page, tables, and what is returned.

    Returns:
        What was found; None when a signal came before the end, and nothing was written.

    Raises:
        InvalidInput: An option is out of range, or a file cannot be written.
        NotFound: A stream does not exist.
    """
    options.check()
    if options.tables is not None:
        make_folder(options.tables)
    own = spark_session.of_its_own(spark)
    start, end = options.times()
    found = []
    for stream in options.streams or _all_streams(url):
        with (
            running(url, f"report {stream}", "report", stream, options, show=show) as run,
            _interrupted_when_stopping(run, own),
        ):
            found.append(_report_on(run, own, stream, options, start, end))
        if run.is_stopping:
            return None
    report = Report(made_at=datetime.now(UTC), from_time=start, to_time=end, streams=tuple(found))
    if options.tables is not None:
        write_tables(report, options.tables, options.format)
    if options.out is not None:
        Path(options.out).expanduser().write_text(page(report), encoding="utf-8")
    return report


@contextmanager
def _interrupted_when_stopping(run: Run, spark: SparkSession) -> Iterator[None]:
    """A report has nothing to lose: what Spark does for it ends at the first signal."""
    tag, done = f"postbus-{run.token}", threading.Event()

    def watch() -> None:
        while not done.wait(_LOOK_SECONDS):
            if run.is_stopping:
                spark.interruptTag(tag)

    watcher = threading.Thread(target=watch, daemon=True)
    spark.addTag(tag)
    watcher.start()
    try:
        yield
    except Exception as error:
        if not (run.is_stopping and is_of_spark(error)):
            raise
    finally:
        done.set()
        watcher.join()
        spark.removeTag(tag)


def _report_on(
    run: Run, spark: SparkSession, stream: str, options: ReportOptions, start: datetime | None, end: datetime | None
) -> StreamFacts:
    window = look_at(run.url, stream, start, end, with_archive=options.archive, seconds=options.bucket)
    traffic, unread = measure_traffic(window, spark, top=options.top)
    run.note(sum(traffic.messages), sum(traffic.messages), window.state.horizon)
    deliveries = measure_deliveries(window, spark, unread)
    dead = measure_dead(window, spark) if any(stats.dead for _, stats in window.consumers) else ()
    older = 0 if start is None else max(0, window.info.message_estimate - sum(traffic.in_log))
    return StreamFacts(
        info=window.info,
        buckets=window.buckets,
        traffic=traffic,
        consumers=tuple(
            ConsumerFacts(
                name=info.name,
                lag=stats.lag_estimate,
                in_flight=stats.in_flight,
                waiting=stats.waiting,
                dead=stats.dead,
                missed=stats.missed_estimate,
                is_group=info.is_group,
                unread_known=knows_unread(info),
                deliveries=deliveries.get(info.name),
                by_priority=stats.by_priority,
            )
            for info, stats in window.consumers
        ),
        dead=dead,
        forecast=forecast(window.info, traffic, window.buckets, window.archive, datetime.now(UTC), older)
        if end is None
        else None,
        archived=None if window.archive is None else window.archive.message_count,
    )


def _all_streams(url: str) -> list[str]:
    names: list[str] = []
    statement, _ = streams.overview(sizes=False).as_sql()
    with session.transaction(url) as database:
        while found := database.rows(statement, (names[-1] if names else "", False)):
            names += [row[0] for row in found]
    return names

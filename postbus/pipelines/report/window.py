"""A stream as a report looks at it: which of its messages, in which time, cut into which buckets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from postbus.codec import rows
from postbus.db import session
from postbus.db.session import Session
from postbus.model.consumer import ConsumerInfo, ConsumerStats
from postbus.model.stream import StreamInfo
from postbus.operations import consumers as consumer_operations
from postbus.operations import messages, streams
from postbus.pipelines.report.buckets import Buckets, buckets_between
from postbus.spark.archive import Archive, find_archive
from postbus.spark.slices import State, state_of
from postbus.spark.statements import ARCHIVE_FILES, HISTORY_BOUNDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What is looked at. first_seqs has, by consumer, the lowest seq of its history."""

    url: str
    info: StreamInfo
    state: State
    archive: Archive | None
    consumers: tuple[tuple[ConsumerInfo, ConsumerStats], ...]
    first_seqs: dict[str, int]
    from_time: datetime | None
    to_time: datetime | None
    buckets: Buckets | None

    def messages(self, spark: SparkSession, columns: str, from_seq: int | None = None) -> DataFrame:
        """The messages of the time, with these columns only; from a seq on, of whichever time."""
        options = {"includeArchive": str(self.archive is not None).lower(), "failOnDataLoss": "false"}
        if from_seq is not None:
            options["startingPosition"] = str(from_seq)
        elif self.from_time is not None:
            options["startingPosition"] = self.from_time.isoformat()
        if self.to_time is not None:
            options["endingPosition"] = self.to_time.isoformat()
        elif self.state.horizon:
            options["endingPosition"] = str(self.state.horizon)
        frame: DataFrame = self._reader(spark, options).schema(columns).load()
        return frame

    def view(self, spark: SparkSession, name: str) -> DataFrame:
        """What consumers made of them."""
        frame: DataFrame = self._reader(spark, {"read": name}).load()
        return frame

    def _reader(self, spark: SparkSession, options: dict[str, str]) -> Any:
        return spark.read.format("postbus").options(url=self.url, stream=self.info.name, **options)


def look_at(
    url: str,
    stream: str,
    from_time: datetime | None,
    to_time: datetime | None,
    *,
    with_archive: bool,
    seconds: float | None,
) -> Window:
    """Look at a stream: all that Postgres says at once. The messages are left to Spark.

    Raises:
        NotFound: The stream does not exist.
    """
    with session.transaction(url) as database:
        (info,) = database.rows(*streams.info(stream).as_sql())
        archive = find_archive(database, stream) if with_archive else None
        consumers = tuple(
            (each, _stats(database, stream, each.name))
            for each in map(rows.consumer_info, database.rows(*consumer_operations.list_all(stream).as_sql()))
        )
        bounds = database.rows(HISTORY_BOUNDS, (stream,))
        first, last = _first(database, stream, archive, from_time, to_time), _last(database, stream, to_time)
        state = state_of(database, stream)
    ends = [each for each in (last, *(finished for *_, finished, _ in bounds)) if each is not None]
    buckets = None
    if first is not None and ends:
        end = max(first, *ends) if to_time is None else max(first, min(max(ends), to_time - timedelta(microseconds=1)))
        buckets = buckets_between(first, end, seconds)
    return Window(
        url=url,
        info=rows.stream_info(info),
        state=state,
        archive=archive,
        consumers=consumers,
        first_seqs={name: seq for _, name, _, _, seq in bounds},
        from_time=from_time,
        to_time=to_time,
        buckets=buckets,
    )


def _stats(database: Session, stream: str, consumer: str) -> ConsumerStats:
    return rows.consumer_stats(database.rows(*consumer_operations.stats(stream, consumer).as_sql()))


def _first(
    database: Session, stream: str, archive: Archive | None, from_time: datetime | None, to_time: datetime | None
) -> datetime | None:
    """When the first message of the time was published; of those in the archive, about."""
    found = _published_at(database, stream, from_time, to_time, backwards=False)
    if archive is not None:
        files = database.rows(ARCHIVE_FILES, (stream, archive.start_after, archive.position_seq, from_time, to_time))
        times = [row[6] if from_time is None else max(row[6], from_time) for row in files]
        found = min((each for each in (found, *times) if each is not None), default=None)
    return found


def _last(database: Session, stream: str, to_time: datetime | None) -> datetime | None:
    return _published_at(database, stream, None, to_time, backwards=True)


def _published_at(
    database: Session, stream: str, from_time: datetime | None, to_time: datetime | None, *, backwards: bool
) -> datetime | None:
    """When the first or the last message of the log in a time was published."""
    resume = None
    while True:
        call = messages.read(
            stream,
            from_seq=None,
            to_seq=None,
            from_time=from_time,
            to_time=to_time,
            key=None,
            key_pattern=None,
            partition=None,
            max_messages=1,
            backwards=backwards,
            resume=resume,
        )
        found = database.rows(*call.as_sql())
        for row in found:
            if row[0] is not None:
                return row[6]  # type: ignore[no-any-return]
        resume = found[-1][-1] if found else None
        if resume is None:
            return None

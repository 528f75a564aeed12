"""Plans a read of a stream over its archive and its log: archived messages come from files, younger ones from Postgres.

The archive has everything between its start and its position, and retention keeps what lies above the position, so there is
neither a gap nor an overlap, whatever happens between planning and reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql.datasource import InputPartition

from postbus.db.arrow import MessageFilter
from postbus.db.session import Session
from postbus.model.errors import Conflict
from postbus.spark.archive import Archive
from postbus.spark.archive_files import LakeRange
from postbus.spark.slices import LogRange, Slice, State, even_ranges, split
from postbus.spark.statements import ARCHIVE_FILES, ARCHIVE_START, SPARK_LOST, SPARK_START


@dataclass(frozen=True, slots=True)
class LakeSlice:
    """What one task reads from files."""

    range: LakeRange
    messages: MessageFilter


@dataclass
class Parts(InputPartition):
    """What one task reads, one after the other: a task costs as much as a hundred thousand messages."""

    parts: tuple[Slice | LakeSlice, ...]


def floor(state: State, archive: Archive | None) -> int:
    """The seq above which everything can be read."""
    log = max(state.start_seq - 1, 0)
    return log if archive is None else min(log, archive.start_after)


def check_gap(database: Session, state: State, archive: Archive | None, stream: str) -> None:
    """Refuse an archive and a log between which messages are missing.

    Raises:
        Conflict: They were purged before they were archived.
    """
    if archive is None or archive.position_seq >= state.start_seq - 1:
        return
    ((purged, _),) = database.rows(SPARK_LOST, (state.stream_id, archive.position_seq))
    if purged:
        raise Conflict(
            f'messages of stream "{stream}" from seq {archive.position_seq + 1} to {state.start_seq - 1} were purged before '
            "they were archived",
            "to go on with what is there, set option failOnDataLoss to false, or archive with --allow-loss",
        )


@dataclass(frozen=True, slots=True)
class SeqRange:
    """A range of a stream.

    Attributes:
        stream: The stream.
        after_seq: The seq before its first message.
        to_seq: Its last.
        log_above: Of the log, only messages above this seq are read.
    """

    stream: str
    after_seq: int
    to_seq: int
    log_above: int = 0


def plan_read(
    database: Session,
    state: State,
    archive: Archive | None,
    wanted: SeqRange,
    *,
    messages: MessageFilter,
    min_count: int | None = None,
    partition: int | None = None,
    ahead: tuple[tuple[int, int], ...] = (),
) -> list[Parts]:
    """What tasks read of a range; nothing when it is empty."""
    stream, after_seq, to_seq, log_above = wanted.stream, wanted.after_seq, wanted.to_seq, wanted.log_above

    def log_alone(low: int, high: int) -> list[Parts]:
        low = max(low, log_above)
        slices = split(
            database, state, low, high, messages=messages, min_count=min_count, partition=partition, ahead=ahead
        )
        return [Parts((part,)) for part in slices]

    if archive is None:
        return log_alone(after_seq, to_seq)
    # What the lake has let go of already may still be in the log.
    start = min(max(after_seq, archive.start_after), to_seq)
    edge = min(max(start, archive.position_seq), to_seq)
    times = (messages.from_time, messages.to_time)
    files = database.rows(ARCHIVE_FILES, (stream, start, edge, *times)) if start < edge else []
    log = LogRange.load(database, state, max(edge, log_above), to_seq)

    def parts(low: int, high: int) -> Iterator[Slice | LakeSlice]:
        end = min(high, edge)
        chosen = tuple((first, path) for _, path, _, _, first, last, _, _ in files if first <= end and last > low)
        if low < end and chosen:
            yield LakeSlice(LakeRange(archive.root, chosen, low, end, partition, ahead), messages)
        low = max(low, edge, log.above_seq, log_above)
        if low < high:
            yield from log.slices(low, high, messages=messages, partition=partition, ahead=ahead)

    tasks = [tuple(parts(low, high)) for low, high in even_ranges(start, to_seq, min_count)]
    return [*log_alone(after_seq, start), *(Parts(found) for found in tasks if found)]


def start_at_time(database: Session, stream: str, state: State, archive: Archive | None, time: datetime) -> int:
    """A seq above which every message since a time lies."""
    found = int(database.value(SPARK_START, (stream, None, None, time)))
    if archive is None or found > max(state.start_seq - 1, 0):
        return found
    # It was before the oldest message of the log.
    low = database.value(ARCHIVE_START, (stream, archive.start_after, time))
    return archive.position_seq if low is None else int(low)

"""Follows a stream: micro-batches between offsets that are complete, durable and replayable."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from postbus.db import session
from postbus.db.arrow import MessageFilter
from postbus.db.session import Session
from postbus.model.errors import Conflict
from postbus.spark.archive import Archive, find_archive
from postbus.spark.columns import check_schema
from postbus.spark.errors import without_traceback
from postbus.spark.offsets import Offset, history_of
from postbus.spark.options import ReadOptions
from postbus.spark.plan import SeqRange, floor, plan_read, start_at_time
from postbus.spark.reader import read_parts
from postbus.spark.slices import State, state_of
from postbus.spark.statements import ARCHIVE_START, SPARK_COMMIT, SPARK_END, SPARK_LOST, SPARK_START

_log: Final = logging.getLogger("postbus.spark")
_ON_LOSS: Final = (
    "to go on with what is there, set option failOnDataLoss to false; to begin anew, use another checkpoint"
)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in a process beside the driver for as long as its query runs; copies of it read on the executors."""

    def __init__(self, options: ReadOptions, schema: StructType, filter: MessageFilter) -> None:
        self._options = options
        self._schema = schema
        self._filter = filter
        # With the trigger AvailableNow: no further than this.
        self._last_seq: int | None = None
        self._committed_seq: int | None = None

    @without_traceback
    def initialOffset(self) -> dict[str, Any]:
        start = self._options.start
        with self._database() as database:
            state = state_of(database, self._options.stream)
            check_schema(self._schema, state.data_type)
            if start.partitions is None:
                return Offset.at(state, self._start(database, state)).as_json()
            ahead = tuple((partition, max(seq - 1, 0)) for partition, seq in start.partitions)
            seq = database.value(SPARK_START, (self._options.stream, "earliest", None, None))
            seq = min(seq, floor(state, self._archive(database)))
            if len(ahead) >= state.partition_count:
                seq = max(seq, min(place for _, place in ahead))
            return Offset.at(state, seq, ahead).as_json()

    def _start(self, database: Session, state: State) -> int:
        """The seq after which to begin."""
        start, archive = self._options.start, self._archive(database)
        if start.time is not None:
            return start_at_time(database, self._options.stream, state, archive, start.time)
        seq = int(database.value(SPARK_START, (self._options.stream, start.word, start.seq, None)))
        if archive is None or start.word == "latest" or seq > max(state.start_seq - 1, 0):
            return seq
        return max(floor(state, archive), 0 if start.seq is None else start.seq - 1)

    def _archive(self, database: Session) -> Archive | None:
        return find_archive(database, self._options.stream) if self._options.include_archive else None

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.max_messages is not None:
            return ReadMaxRows(self._options.max_messages)
        return ReadAllAvailable()

    @without_traceback
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        with self._database() as database:
            state = state_of(database, self._options.stream)
            last = Offset.of(start)
            archive = self._archive(database)
            begin = self._begin(database, state, archive, last)
            if archive is not None and begin < archive.position_seq:
                seq = self._archived_end(database, archive, begin, limit)
                return Offset.at(state, seq, last.ahead, begin if begin != last.seq else None).as_json()
            seq = database.value(
                SPARK_END,
                (
                    self._options.stream,
                    begin,
                    self._last_seq,
                    limit.max_rows if isinstance(limit, ReadMaxRows) else None,
                    None if self._last_seq is None and isinstance(limit, ReadAllAvailable) else self._options.max_bytes,
                ),
            )
            if seq == begin:
                if begin == last.seq:
                    # Spark asks for the next batch when the last one is done, and commits that one only if there is a next.
                    self._commit(database, begin)
                return start
            is_gap = begin != last.seq or last.history() != history_of(state)
            return Offset.at(state, seq, last.ahead, begin if is_gap else None).as_json()

    def _archived_end(self, database: Session, archive: Archive, begin: int, limit: ReadLimit) -> int:
        """Where a batch ends that begins in the archive: there too, so that batches are as small as asked for."""
        end = archive.position_seq if self._last_seq is None else min(archive.position_seq, self._last_seq)
        first = database.value(ARCHIVE_START, (self._options.stream, begin, None))
        if first is not None and isinstance(limit, ReadMaxRows):
            end = min(end, int(first) + limit.max_rows)
        return max(end, begin)

    def _begin(self, database: Session, state: State, archive: Archive | None, last: Offset) -> int:
        """Where the batch after an offset begins: there, unless messages are lost."""
        if last.history() != history_of(state):
            self._lose(
                "the checkpoint belongs to another history of the database: after a failover or a restore, or because the "
                "stream was made anew, messages may be lost and their seqs given to others"
            )
            return min(last.seq, state.horizon) if last.stream_id == state.stream_id else state.start_seq - 1
        if last.seq > state.horizon:
            self._lose(f"the checkpoint is at seq {last.seq}, and the stream ends at {state.horizon}")
            return state.horizon
        if archive is not None and archive.start_after <= last.seq < archive.position_seq:
            return last.seq
        (row,) = database.rows(SPARK_LOST, (state.stream_id, last.seq))
        if row[0]:
            self._lose(f"messages from seq {last.seq + 1} to {state.start_seq - 1} were purged before they were read")
            return state.start_seq - 1
        return last.seq

    def _lose(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise Conflict(what, _ON_LOSS)
        _log.warning("stream %s: %s; going on, as failOnDataLoss is false", self._options.stream, what)

    @without_traceback
    def reportLatestOffset(self) -> dict[str, Any]:
        with self._database() as database:
            state = state_of(database, self._options.stream)
        return Offset.at(state, state.horizon).as_json()

    @without_traceback
    def prepareForTriggerAvailableNow(self) -> None:
        with self._database() as database:
            self._last_seq = state_of(database, self._options.stream).horizon

    @without_traceback
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        first, last = Offset.of(start), Offset.of(end)
        begin = first.seq if last.after_seq is None else last.after_seq
        if last.seq <= begin:
            return []
        with self._database() as database:
            state = state_of(database, self._options.stream)
            if last.history() != history_of(state):
                self._lose("the batch to repeat was read from another history of the database")
            archive = self._archive(database)
            ((_, dropped),) = database.rows(SPARK_LOST, (state.stream_id, begin))
            if dropped and (archive is None or begin < archive.start_after):
                self._lose(f"messages above seq {begin} were purged before they were read")
            return plan_read(
                database,
                state,
                archive,
                SeqRange(self._options.stream, begin, last.seq),
                messages=self._filter,
                min_count=self._options.min_partitions,
                ahead=first.ahead,
            )

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_parts(self._options, self._schema, partition)

    @without_traceback
    def commit(self, end: dict[str, Any]) -> None:
        if self._options.consumer is not None:
            with self._database() as database:
                self._commit(database, Offset.of(end).seq)

    def _commit(self, database: Session, seq: int) -> None:
        """Show how far the query is as the position of its consumer."""
        if self._options.consumer is not None and seq != self._committed_seq:
            database.rows(SPARK_COMMIT, (self._options.stream, self._options.consumer, seq))
            self._committed_seq = seq

    def _database(self) -> Any:
        return session.transaction(self._options.address.resolve())

"""Reads a range of a stream as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from postbus.db import session
from postbus.db.arrow import SegmentDropped, read_batches
from postbus.db.session import Session
from postbus.spark import compat
from postbus.spark.archive import Archive, find_archive
from postbus.spark.archive_files import read_files
from postbus.spark.columns import Columns, check_schema, fetched_columns
from postbus.spark.errors import hide_traceback, without_traceback
from postbus.spark.filters import Pushed, push
from postbus.spark.options import Position, ReadOptions
from postbus.spark.plan import LakeSlice, Parts, SeqRange, check_gap, floor, plan_read, start_at_time
from postbus.spark.slices import Slice, State, state_of
from postbus.spark.statements import PATTERN_REGEX, SEQ_SINCE, SPARK_START


def read_parts(options: ReadOptions, schema: StructType, task: InputPartition) -> Iterator[Any]:
    """What a task does: read its parts. One that has nothing to do is no `Parts`."""
    for part in task.parts if isinstance(task, Parts) else ():
        yield from _read_part(options, schema, part)
    compat.freeze_imports()


def _read_part(options: ReadOptions, schema: StructType, part: Slice | LakeSlice) -> Iterator[Any]:
    """Connect, or open files, read a slice, turn it into columns."""
    columns = fetched_columns(schema)
    try:
        if isinstance(part, LakeSlice):
            batches = read_files(part.range, columns, part.messages)
        else:
            batches = read_batches(options.address.resolve(), part.system, part.range, columns, part.messages)
        yield from Columns(schema, is_strict=options.fail_on_bad_data).convert(batches)
    except SegmentDropped:
        if options.fail_on_data_loss:
            hide_traceback()
            raise
    except Exception:
        hide_traceback()
        raise


class Reader(DataSourceReader):
    """Plans on the driver, reads on the executors. Holds no connection, so that it can be sent to them."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._wanted = Pushed()
        # An attribute hides the method of the class; see compat.OptionalPushdown.
        self.pushFilters = compat.OptionalPushdown(self._push)  # type: ignore[method-assign]

    def _push(self, filters: list[Filter]) -> Iterable[Filter]:
        self._wanted, left = push(filters, self._wanted)
        return left

    @without_traceback
    def partitions(self) -> list[InputPartition]:
        options = self._options
        with session.transaction(options.address.resolve()) as database:
            state = state_of(database, options.stream)
            check_schema(self._schema, state.data_type)
            archive = find_archive(database, options.stream) if options.include_archive else None
            if options.fail_on_data_loss:
                check_gap(database, state, archive, options.stream)
            wanted = self._narrowed(database, state, archive)
            ahead = options.start.partitions or ()
            tasks = plan_read(
                database,
                state,
                archive,
                SeqRange(
                    options.stream,
                    max(floor(state, archive), wanted.after_seq),
                    min(state.horizon, wanted.to_seq),
                    log_above=state.start_seq - 1,
                ),
                messages=wanted.messages,
                min_count=options.min_partitions,
                partition=wanted.partition,
                ahead=tuple((partition, seq - 1) for partition, seq in ahead),
            )
        compat.freeze_imports()
        # Spark would make one task of nothing out of an empty list, and read it.
        return list(tasks) or [InputPartition(None)]

    def _narrowed(self, database: Session, state: State, archive: Archive | None) -> Pushed:
        """What is wanted, with positions and patterns turned into bounds and conditions."""
        options, wanted = self._options, self._wanted
        messages = wanted.messages
        if options.key_pattern is not None:
            messages = replace(messages, key_regex=database.value(PATTERN_REGEX, (options.key_pattern,)))
        if options.start.time is not None:
            known = messages.from_time
            messages = replace(messages, from_time=max(known or options.start.time, options.start.time))
        if options.end.time is not None:
            known = messages.to_time
            messages = replace(messages, to_time=min(known or options.end.time, options.end.time))
        low = max(wanted.after_seq, self._start(database, options.start))
        high = min(wanted.to_seq, options.end.seq if options.end.seq is not None else wanted.to_seq)
        if messages.from_time is not None:
            low = max(low, start_at_time(database, options.stream, state, archive, messages.from_time))
        if messages.to_time is not None:
            since = database.value(SEQ_SINCE, (options.stream, messages.to_time))
            high = high if since is None else min(high, since)
        return replace(wanted, after_seq=low, to_seq=high, messages=messages)

    def _start(self, database: Session, start: Position) -> int:
        if start.word == "latest":
            return int(database.value(SPARK_START, (self._options.stream, "latest", None, None)))
        return 0 if start.seq is None else start.seq - 1

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_parts(self._options, self._schema, partition)

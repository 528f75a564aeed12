"""What became of deliveries, as a DataFrame: of all consumers of a stream that keep a history, or of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from pyspark.sql.datasource import (
    DataSourceReader,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from postbus.db import session
from postbus.db.arrow import HistoryRange, read_history
from postbus.model.errors import InvalidInput
from postbus.operations import consumers
from postbus.spark.compat import OptionalPushdown, arrow_schema
from postbus.spark.errors import hide_traceback, without_traceback
from postbus.spark.options import ReadOptions
from postbus.spark.slices import state_of
from postbus.spark.statements import HISTORY_BOUNDS

HISTORY: Final = "history"
HISTORY_SCHEMA: Final = (
    "consumer STRING NOT NULL, partition INT NOT NULL, seqs ARRAY<BIGINT> NOT NULL, attempts ARRAY<INT>, "
    "received_at TIMESTAMP NOT NULL, finished_at TIMESTAMP NOT NULL, outcome STRING NOT NULL, reason STRING"
)
# The history of a consumer is cut into so many pieces of equal time.
_PIECES: Final = 4
_MOMENT: Final = timedelta(microseconds=1)


@dataclass
class Piece(InputPartition):
    """What one task reads, and from which Postgres."""

    consumer: str
    range: HistoryRange
    system: str


class HistoryReader(DataSourceReader):
    """Reads what is there when a task comes to it; what is finished after the read was planned is left out."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        if options.key_pattern is not None:
            raise InvalidInput(f"option keyPattern is not one for read = {HISTORY}")
        self._options = options
        self._schema = schema
        self._from_time = datetime.min.replace(tzinfo=UTC)
        self._to_time = datetime.max.replace(tzinfo=UTC)
        # An attribute hides the method of the class; see OptionalPushdown.
        self.pushFilters = OptionalPushdown(self._push)  # type: ignore[method-assign]

    def _push(self, filters: list[Filter]) -> Iterable[Filter]:
        """Bounds on finished_at become those of the read. Spark looks again, so that they may be a moment too wide."""
        for one in filters:
            value = getattr(one, "value", None)
            if getattr(one, "attribute", ()) != ("finished_at",) or not isinstance(value, datetime) or not value.tzinfo:
                continue
            if isinstance(one, GreaterThan | GreaterThanOrEqual):
                self._from_time = max(self._from_time, value)
            elif isinstance(one, LessThan | LessThanOrEqual):
                self._to_time = min(self._to_time, value + _MOMENT)
        return filters

    @without_traceback
    def partitions(self) -> list[InputPartition]:
        options = self._options
        with session.transaction(options.address.resolve()) as database:
            system = state_of(database, options.stream).system
            if options.consumer is not None:
                database.rows(*consumers.info(options.stream, options.consumer).as_sql())
            found = database.rows(HISTORY_BOUNDS, (options.stream,))
        pieces: list[InputPartition] = [
            Piece(name, HistoryRange(consumer_id, low, high), system)
            for consumer_id, name, first, last, _ in found
            if options.consumer in (None, name)
            for low, high in _pieces(max(first, self._from_time), min(last + _MOMENT, self._to_time))
        ]
        # Spark would make one task of nothing out of an empty list, and read it.
        return pieces or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if not isinstance(partition, Piece):
            return
        names = self._schema.fieldNames()
        try:
            for batch in read_history(self._options.address.resolve(), partition.system, partition.range, names):
                yield _converted(batch, partition.consumer, self._schema)
        except Exception:
            hide_traceback()
            raise


def _pieces(start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    """A time in equal parts; none when it is empty."""
    if end <= start:
        return []
    count = min(_PIECES, (end - start) // _MOMENT)
    bounds = [start + (end - start) * place / count for place in range(count)] + [end]
    return list(pairwise(bounds))


def _converted(batch: Any, consumer: str, schema: StructType) -> Any:
    import pyarrow

    wanted = arrow_schema(schema)
    arrays = [
        pyarrow.array([consumer] * batch.num_rows, pyarrow.string())
        if field.name == "consumer"
        else batch.column(field.name)
        for field in wanted
    ]
    cast = [
        array if array.type == field.type else array.cast(field.type)
        for array, field in zip(arrays, wanted, strict=True)
    ]
    return pyarrow.RecordBatch.from_arrays(cast, schema=wanted)

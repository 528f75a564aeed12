"""What a task does to publish its rows: it puts them into the staging area of Postgres, where the driver finds them.

Chunks of plain messages are staged as rows that the driver can hand to COPY. All others, and small ones, are staged as
arrays, which Postgres checks: what is wrong with a message is said there alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from postbus.db import arrays
from postbus.db.session import Session
from postbus.model.partitioning import DEFAULT_PRIORITY
from postbus.spark import log_rows
from postbus.spark.statements import SPARK_STAGE, SPARK_STAGE_ROWS

# What publish_many takes at once, and what is a good size for a row.
CHUNK_MESSAGES: Final = 10_000
CHUNK_BYTES: Final = 8 * 1024 * 1024
# A task with fewer saves less by COPY than the calls cost that it needs.
_ENCODED_FROM: Final = 1_000
_KEY_BYTES: Final = 255
# Keys that tokens_are_valid accepts.
_KEY: Final = r"^[^\x00-\x20\x7f*>.]+(\.[^\x00-\x20\x7f*>.]+)*$"


@dataclass(frozen=True, slots=True)
class Area:
    """Where a task stages its chunks: for which stream, under which names."""

    database: Session
    stream: str
    is_bytes: bool
    attempt: str
    writer: str
    batch_id: int

    def stage(self, number: int, chunk: Any) -> bool:
        """Stage a chunk; whether as rows for COPY."""
        if self._stage_rows(number, chunk):
            return True
        self._stage_arrays(number, chunk)
        return False

    def _stage_rows(self, number: int, chunk: Any) -> bool:
        if (number == 0 and chunk.num_rows < _ENCODED_FROM) or not _is_plain(chunk):
            return False
        keys, data = _binary_of(chunk, "key"), _binary_of(chunk, "data")
        parameters = (*self._place(number, chunk), self.is_bytes, _longest(data), log_rows.encode(keys, data))
        return bool(self.database.value(SPARK_STAGE_ROWS, parameters))

    def _stage_arrays(self, number: int, chunk: Any) -> None:
        data = _bytes_of(chunk, "data")
        self.database.rows(
            SPARK_STAGE,
            (
                *self._place(number, chunk),
                _array(arrays.TextArray, _bytes_of(chunk, "key")),
                None if self.is_bytes else _array(arrays.TextArray, data),
                _array(arrays.JsonbArray, _headers_of(chunk)),
                _array(arrays.BytesArray, data) if self.is_bytes else None,
                _array(arrays.TextArray, _times_of(chunk, "deliver_at")),
                _array(arrays.TextArray, _priorities_of(chunk)),
            ),
        )

    def _place(self, number: int, chunk: Any) -> tuple[Any, ...]:
        return self.stream, self.attempt, number, self.writer, self.batch_id, chunk.num_rows


def chunks(batches: Iterable[Any]) -> Iterator[Any]:
    """Record batches cut to what is staged as one row."""
    for batch in batches:
        rows = min(CHUNK_MESSAGES, max(1, batch.num_rows * CHUNK_BYTES // max(batch.nbytes, 1)))
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def _is_plain(chunk: Any) -> bool:
    """Whether messages have nothing that only Postgres can check, except that JSON is JSON, which COPY does."""
    if chunk.column("data").null_count > 0:
        return False
    if any(
        name in chunk.schema.names and chunk.column(name).null_count < chunk.num_rows
        for name in ("headers", "deliver_at")
    ):
        return False
    if _priorities_of(chunk) is not None:
        return False
    keys = _binary_of(chunk, "key")
    return keys is None or _are_valid(keys)


def _are_valid(keys: Any) -> bool:
    from pyarrow import compute

    distinct = keys.unique().drop_null()
    is_valid = compute.match_substring_regex(distinct, _KEY)
    return _longest(distinct) <= _KEY_BYTES and compute.all(is_valid, min_count=0).as_py()


def _longest(values: Any) -> int:
    from pyarrow import compute

    return compute.max(compute.binary_length(values)).as_py() or 0


def _binary_of(chunk: Any, name: str) -> Any:
    import pyarrow

    if name not in chunk.schema.names:
        return None
    column = chunk.column(name)
    return column if column.type == pyarrow.binary() else column.cast(pyarrow.binary())


def _bytes_of(chunk: Any, name: str) -> list[bytes | None] | None:
    column = _binary_of(chunk, name)
    return None if column is None else column.to_pylist()


def _array(kind: Any, values: list[bytes | None] | None) -> Any:
    return None if values is None else kind(values)


def _headers_of(chunk: Any) -> list[bytes | None] | None:
    if "headers" not in chunk.schema.names:
        return None
    column = chunk.column("headers")
    if column.null_count == len(column):
        return None
    return [None if pairs is None else orjson.dumps(dict(pairs)) for pairs in column.to_pylist()]


def _priorities_of(chunk: Any) -> list[bytes | None] | None:
    """Priorities as text; None when all are the default."""
    if "priority" not in chunk.schema.names:
        return None
    column = chunk.column("priority")
    if all(value in (None, DEFAULT_PRIORITY) for value in column.unique().to_pylist()):
        return None
    return [None if value is None else str(value).encode() for value in column.to_pylist()]


def _times_of(chunk: Any, name: str) -> list[bytes | None] | None:
    """Times as text; None when there are none."""
    if name not in chunk.schema.names or chunk.column(name).null_count == chunk.num_rows:
        return None
    return [None if time is None else time.isoformat().encode() for time in chunk.column(name).to_pylist()]

"""What a task of a backfill does: it reads a range of a table at a snapshot, and publishes it in one transaction.

That transaction also notes that the range is done, and holds it meanwhile. So of two attempts at a range one publishes, and what
is killed leaves nothing. Rows of the stream's own database do not leave it, as long as all of a range can be published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import orjson

from postbus.db import session
from postbus.db.arrays import BytesArray, TextArray
from postbus.db.arrow import read_rows
from postbus.db.session import Session
from postbus.pipelines.backfill.statements import BEGIN_RANGE, COPY_RANGE, END_RANGE, PUBLISH_ROWS
from postbus.pipelines.backfill.table_messages import Shape, statement_for
from postbus.pipelines.backfill.tables import SETTINGS, KeyRange, Table
from postbus.pipelines.runtime.statements import OPEN_ASIDE
from postbus.spark.errors import without_traceback
from postbus.spark.options import Address
from postbus.spark.staging import chunks

RESULT: Final = "messages bigint, bad bigint"
_SETTINGS: Final = [line.strip() for line in SETTINGS.split(";")]


class _NotThere(Exception):
    """The server cannot do it alone."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where messages go: a stream, what it takes, and the stream for rows that it does not."""

    url: str
    stream: str
    most_bytes: int
    aside: str


@dataclass(frozen=True, slots=True)
class RangeCopier:
    """Copies ranges of a backfill; Spark calls it with the places of their numbers."""

    pipeline: str
    writer: str
    snapshot_id: int
    snapshot: str
    source: Address
    table: Table
    shape: Shape
    target: Target
    numbers: tuple[int, ...]
    is_at_home: bool

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        for batch in batches:
            done = [self.copy(self.numbers[place]) for place in batch.column(0).to_pylist()]
            columns = {"messages": [count for count, _ in done], "bad": [bad for _, bad in done]}
            yield pyarrow.RecordBatch.from_pydict(columns)

    @without_traceback
    def copy(self, number: int) -> tuple[int, int]:
        """Publish a range, unless that was done; how many messages it had, and rows that are aside."""
        if self.is_at_home:
            with suppress(_NotThere):
                return self._copy_there(number), 0
        count = bad = 0
        with session.transaction(self.target.url) as database:
            found = database.rows(BEGIN_RANGE, (self.snapshot_id, self.writer, number))
            if not found:
                return 0, 0
            text = self._statement(found)
            for chunk in chunks(read_rows(self.source.resolve(), self.snapshot, _SETTINGS, text)):
                good, problems = self._sorted(chunk)
                count += self._publish(database, good)
                bad += self._put_aside(database, problems)
            database.rows(END_RANGE, (self.snapshot_id, self.writer, number, count, bad))
        return count, bad

    def _copy_there(self, number: int) -> int:
        """Let the server do it, which has both the rows and the stream."""
        with session.transaction(self.target.url) as database:
            found = database.rows(BEGIN_RANGE, (self.snapshot_id, self.writer, number))
        if not found:
            return 0
        with session.transaction(self.target.url, snapshot=self.snapshot) as database:
            for setting in _SETTINGS:
                database.rows(setting)
            text = self._statement(found, as_stored=True)
            parameters = (self.target.stream, self.snapshot_id, self.writer, number, text)
            count = database.value(COPY_RANGE, parameters)
            if count is None:
                raise _NotThere
        return int(count)

    def _statement(self, found: list[tuple[Any, ...]], *, as_stored: bool = False) -> str:
        """The query that reads a range as messages."""
        ((after, to, is_of_nulls),) = found
        wanted = KeyRange(after and tuple(after), to and tuple(to), is_of_nulls)
        return statement_for(self.table, wanted, self.shape, as_stored=as_stored)

    def _sorted(self, chunk: Any) -> tuple[Any, list[tuple[str, str]]]:
        """The rows that can be published, and the others with their reasons."""
        import pyarrow.compute as pc

        sizes = pc.binary_length(chunk.column("data"))
        largest = pc.max(sizes).as_py() or 0
        if chunk.column("problem").null_count == chunk.num_rows and largest <= self.target.most_bytes:
            return chunk, []
        too_large = pc.fill_null(pc.greater(sizes, self.target.most_bytes), False)
        is_bad = pc.or_(too_large, pc.is_valid(chunk.column("problem")))
        problems = []
        for row in chunk.filter(is_bad).to_pylist():
            size = len(_bytes(row["data"] or ""))
            reason = row["problem"] or f"it has {size} bytes, and the stream allows {self.target.most_bytes}"
            text = row["row"] if row["row"] is not None else _bytes(row["data"]).decode(errors="replace")
            problems.append((reason, text))
        return chunk.filter(pc.invert(is_bad)), problems

    def _publish(self, database: Session, chunk: Any) -> int:
        if not chunk.num_rows:
            return 0
        data = _values(chunk, "data")
        is_bytes = self.shape.data_type == "bytes"
        parameters = (
            self.target.stream,
            TextArray(_values(chunk, "key")),
            None if is_bytes else TextArray(data),
            BytesArray(data) if is_bytes else None,
        )
        return int(database.value(PUBLISH_ROWS, parameters))

    def _put_aside(self, database: Session, problems: list[tuple[str, str]]) -> int:
        if problems:
            with session.transaction(self.target.url) as other:
                other.rows(OPEN_ASIDE, (self.target.aside,))
            rows = [{"reason": reason, "pipeline": self.pipeline, "row": row} for reason, row in problems]
            data = TextArray([orjson.dumps(row) for row in rows])
            database.rows(PUBLISH_ROWS, (self.target.aside, None, data, None))
        return len(problems)


def _values(chunk: Any, name: str) -> list[bytes | None]:
    import pyarrow

    values: list[bytes | None] = chunk.column(name).cast(pyarrow.binary()).to_pylist()
    return values


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value

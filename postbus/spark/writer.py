"""Publishes a DataFrame: tasks stage their rows, the driver publishes them in one transaction.

Postgres remembers which batch of a writer it published last, in that same transaction. So a batch that is run again,
because a driver died before Spark knew that it was done, is not published again.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pyspark.sql import types
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from postbus.db import arrays, session
from postbus.model.errors import ConnectionLost, InvalidInput
from postbus.spark import compat
from postbus.spark.errors import without_traceback
from postbus.spark.options import WriteOptions
from postbus.spark.publishing import Identity, Staged, publish
from postbus.spark.staging import Area, chunks
from postbus.spark.statements import SPARK_DISCARD

_HEADERS: Final = types.MapType(types.StringType(), types.StringType())


def check_columns(schema: types.StructType, data_type: str) -> None:
    """Refuse columns that cannot be published.

    Raises:
        InvalidInput: One is missing, unknown or of another type; the hint says what to write.
    """
    wanted: dict[str, types.DataType] = {
        "key": types.StringType(),
        "data": types.BinaryType() if data_type == "bytes" else types.StringType(),
        "headers": _HEADERS,
        "deliver_at": types.TimestampType(),
        "priority": types.IntegerType(),
    }
    names = schema.fieldNames()
    unknown = [name for name in names if name not in wanted]
    if unknown:
        raise InvalidInput(
            f"a message has no column {', '.join(unknown)}",
            "it has key, data, headers, deliver_at, priority; to_json(struct(…)).alias('data') makes one of several columns",
        )
    if "data" not in names:
        raise InvalidInput("column data is missing", "to_json(struct(…)).alias('data') makes one of several columns")
    for field in schema.fields:
        kind = field.dataType
        fits = (
            isinstance(kind, types.MapType)
            and isinstance(kind.keyType, types.StringType)
            and isinstance(kind.valueType, types.StringType)
            if field.name == "headers"
            else type(kind) is type(wanted[field.name])
        )
        if not fits:
            raise InvalidInput(
                f"column {field.name} is {kind.simpleString()}, and has to be {wanted[field.name].simpleString()}",
                "to_json(…) turns a struct into the text of a json stream" if field.name == "data" else None,
            )


class _Writer:
    """What batch and stream writers share."""

    def __init__(self, options: WriteOptions, data_type: str) -> None:
        self._options = options
        self._data_type = data_type

    def _stage(self, batches: Iterable[Any], identity: Identity) -> Staged:
        """Stage a task's rows in one transaction: a task that fails leaves nothing."""
        attempt = str(uuid.uuid4())
        count, has_rows = 0, False
        with session.transaction(self._options.address.resolve()) as database:
            area = Area(
                database,
                self._options.stream,
                self._data_type == "bytes",
                attempt,
                self._staged_by(identity),
                identity.batch_id,
            )
            for number, chunk in enumerate(chunks(batches)):
                count += chunk.num_rows
                has_rows |= area.stage(number, chunk)
        compat.freeze_imports()
        return Staged(attempt, compat.task_partition(), count, identity.query, has_rows)

    def _publish(self, staged: Sequence[Staged], identity: Identity) -> None:
        url = self._options.address.resolve()
        try:
            publish(url, self._options.stream, identity, staged)
        except ConnectionLost:
            # It may have been published: asking again finds out, and publishes if not.
            publish(url, self._options.stream, identity, staged)

    def _discard(self, staged: Sequence[Staged], identity: Identity) -> None:
        attempts = arrays.TextArray([one.attempt.encode() for one in staged])
        with session.transaction(self._options.address.resolve()) as database:
            database.rows(SPARK_DISCARD, (self._staged_by(identity), identity.batch_id, attempts))

    def _staged_by(self, identity: Identity) -> str:
        """Whose rows they are in the staging area: a writer may write to several streams at once."""
        return f"{self._options.stream}/{identity.writer}"


class Writer(_Writer, DataSourceArrowWriter):
    """Publishes a DataFrame as one batch. With writerId and batchId, once."""

    def __init__(self, options: WriteOptions, data_type: str) -> None:
        super().__init__(options, data_type)
        if (options.writer_id is None) != (options.batch_id is None):
            raise InvalidInput(
                "options writerId and batchId go together", "a writer publishes each batch id once; ids have to grow"
            )
        if options.writer_id is None or options.batch_id is None:
            self._identity = Identity(f"once-{secrets.token_hex(16)}", 0, is_once=True)
        else:
            self._identity = Identity(options.writer_id, options.batch_id)

    @without_traceback
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._stage(iterator, self._identity)

    @without_traceback
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._publish(_staged(messages), self._identity)

    @without_traceback
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._discard(_staged(messages), self._identity)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    """Publishes each micro-batch of a query once."""

    @without_traceback
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        query, batch_id = compat.task_query()
        return self._stage(iterator, self._identity(query, -1 if batch_id is None else batch_id))

    @without_traceback
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        staged = _staged(messages)
        if staged:
            self._publish(staged, self._identity(staged[0].query, batchId))

    @without_traceback
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        staged = _staged(messages)
        if staged:
            self._discard(staged, self._identity(staged[0].query, batchId))

    def _identity(self, query: str | None, batch_id: int) -> Identity:
        writer = self._options.writer_id or (f"query-{query}" if query else None)
        if writer is None:
            raise InvalidInput(
                "this Spark does not tell its tasks which query they work for", "name the query by option writerId"
            )
        return Identity(writer, batch_id, query)


def _staged(messages: Iterable[WriterCommitMessage | None]) -> list[Staged]:
    return [message for message in messages if isinstance(message, Staged)]

"""What consumers made of a stream, as DataFrames: their dead letters, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from postbus.db import session
from postbus.db.session import Session
from postbus.model.errors import InvalidInput
from postbus.operations import consumers, dead_letters, messages
from postbus.spark.errors import hide_traceback, without_traceback
from postbus.spark.history import HISTORY, HISTORY_SCHEMA
from postbus.spark.options import ReadOptions
from postbus.spark.slices import state_of

DEAD_LETTERS: Final = "deadLetters"
CONSUMER_STATES: Final = "consumerStates"
STATE: Final = "state"
_PAGE: Final = 10_000
_DEAD_LETTER: Final = (
    "consumer STRING NOT NULL, key STRING, data {data}, headers MAP<STRING, STRING>, partition INT NOT NULL, "
    "seq BIGINT NOT NULL, published_at TIMESTAMP, attempts INT NOT NULL, reason STRING, died_at TIMESTAMP NOT NULL, "
    "deferrals INT NOT NULL, saved_state STRING, saved_state_bytes BINARY"
)
_KEY_STATE: Final = (
    "key STRING NOT NULL, data {data}, headers MAP<STRING, STRING>, partition INT NOT NULL, seq BIGINT NOT NULL, "
    "published_at TIMESTAMP NOT NULL"
)
_CONSUMER_STATE: Final = (
    "consumer STRING NOT NULL, partition INT, backlog BIGINT, backlog_is_exact BOOLEAN, position_seq BIGINT, "
    "horizon_seq BIGINT NOT NULL, lag_estimate BIGINT NOT NULL, "
    "oldest_unread_at TIMESTAMP, in_flight BIGINT NOT NULL, waiting BIGINT, dead BIGINT, oldest_in_flight_at TIMESTAMP, "
    "expired BIGINT NOT NULL, missed_estimate BIGINT NOT NULL, rate_estimate DOUBLE"
)

# As the functions of Postgres give them. They may give more, after these.
_STATE_NAMES: Final = (
    "partition",
    "backlog",
    "backlog_is_exact",
    "position_seq",
    "horizon_seq",
    "lag_estimate",
    "oldest_unread_at",
    "in_flight",
    "waiting",
    "dead",
    "oldest_in_flight_at",
    "expired",
    "missed_estimate",
    "rate_estimate",
)
_KEY_NAMES: Final = ("seq", "partition", "key", "data", "bytes", "headers", "published_at", "resume")
_LETTER_NAMES: Final = (
    "seq",
    "partition",
    "key",
    "data",
    "bytes",
    "headers",
    "published_at",
    "attempts",
    "reason",
    "died_at",
    "deferrals",
    "saved_state",
    "saved_state_bytes",
)


def view_schema(view: str, data_type: str) -> str:
    """The columns of a view of a stream with that type of data, as Spark writes them."""
    if view == CONSUMER_STATES:
        return _CONSUMER_STATE
    if view == HISTORY:
        return HISTORY_SCHEMA
    if view == STATE:
        return _KEY_STATE.format(data="BINARY" if data_type == "bytes" else "STRING")
    return _DEAD_LETTER.format(data="BINARY" if data_type == "bytes" else "STRING")


@dataclass
class OfConsumer(InputPartition):
    """What one task reads: all there is of one consumer."""

    consumer: str
    is_bytes: bool


class ViewReader(DataSourceReader):
    """Reads page by page, each as it is at its moment: consumers go on working meanwhile."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        if options.view == CONSUMER_STATES and options.key_pattern is not None:
            raise InvalidInput(f"option keyPattern is not one for read = {CONSUMER_STATES}")
        self._options = options
        self._names = schema.fieldNames()

    @without_traceback
    def partitions(self) -> list[InputPartition]:
        with self._database() as database:
            is_bytes = state_of(database, self._options.stream).data_type == "bytes"
            if self._options.view == STATE:
                # Raises if the stream keeps none.
                database.rows(*_state_page(self._options.stream, None, "", 1))
                return [OfConsumer("", is_bytes)]
            # Their second column is the name.
            names = [row[1] for row in database.rows(*consumers.list_all(self._options.stream).as_sql())]
            if self._options.consumer is not None:
                database.rows(*consumers.info(self._options.stream, self._options.consumer).as_sql())
                names = [self._options.consumer]
        # Spark would make one task of nothing out of an empty list, and read it.
        return [OfConsumer(name, is_bytes) for name in names] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        if not isinstance(partition, OfConsumer):
            return
        rows = {CONSUMER_STATES: _consumer_states, STATE: _state}.get(self._options.view, _dead_letters)
        try:
            with self._database() as database:
                for row in rows(database, self._options, partition):
                    yield tuple(row[name] for name in self._names)
        except Exception:
            hide_traceback()
            raise

    def _database(self) -> AbstractContextManager[Session]:
        return session.transaction(self._options.address.resolve())


def _consumer_states(database: Session, options: ReadOptions, part: OfConsumer) -> Iterator[dict[str, Any]]:
    for values in database.rows(*consumers.stats(options.stream, part.consumer).as_sql()):
        yield dict(zip(_STATE_NAMES, values, strict=False), consumer=part.consumer)


def _state(database: Session, options: ReadOptions, part: OfConsumer) -> Iterator[dict[str, Any]]:
    after_key = ""
    while page := database.rows(*_state_page(options.stream, options.key_pattern, after_key, _PAGE)):
        for values in page:
            row = dict(zip(_KEY_NAMES, values, strict=False))
            after_key = row["key"]
            if part.is_bytes:
                row["data"] = row["bytes"]
            yield row


def _dead_letters(database: Session, options: ReadOptions, part: OfConsumer) -> Iterator[dict[str, Any]]:
    after_seq = 0
    while page := database.rows(*_letters_page(options, part.consumer, after_seq)):
        for values in page:
            row = dict(zip(_LETTER_NAMES, values, strict=False), consumer=part.consumer)
            after_seq = row["seq"]
            if part.is_bytes:
                row["data"] = row["bytes"]
            yield row


def _state_page(stream: str, key_pattern: str | None, after_key: str, size: int) -> tuple[str, list[Any]]:
    return messages.state(stream, key=None, key_pattern=key_pattern, after_key=after_key, max_messages=size).as_sql()


def _letters_page(options: ReadOptions, consumer: str, after_seq: int) -> tuple[str, list[Any]]:
    return dead_letters.list_page(
        options.stream,
        consumer,
        seqs=None,
        key_pattern=options.key_pattern,
        reason_like=None,
        after_seq=after_seq,
        max_messages=_PAGE,
    ).as_sql()

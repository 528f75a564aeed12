"""What the driver does when all tasks have staged their rows: it publishes them in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
from pyspark.sql.datasource import WriterCommitMessage

from postbus.db import arrays, session
from postbus.db.session import Session
from postbus.spark import log_rows
from postbus.spark.prefetch import prepared
from postbus.spark.statements import (
    SPARK_BEGIN_BATCH,
    SPARK_END_BATCH,
    SPARK_ENTER,
    SPARK_PLACE_ROWS,
    SPARK_PUBLISH,
    SPARK_PUBLISH_CHUNK,
    SPARK_STAGED,
)


@dataclass(frozen=True, slots=True)
class Staged(WriterCommitMessage):
    """What a task has staged: which attempt at which task, for whom, how many messages, and whether some as rows for COPY."""

    attempt: str
    task: int
    count: int
    query: str | None
    has_rows: bool = False


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose batch it is: the name and number by which Postgres knows whether it was published."""

    writer: str
    batch_id: int
    query: str | None = None
    is_once: bool = False


@dataclass(frozen=True, slots=True)
class _Chunk:
    attempt: str
    number: int
    count: int
    is_encoded: bool


@dataclass(frozen=True, slots=True)
class _Rows:
    """A chunk as COPY takes it, and the segment that it goes to."""

    stream_id: int
    segment: int
    content: bytes


def publish(url: str, stream: str, identity: Identity, staged: Sequence[Staged]) -> None:
    """Publish a batch in a transaction, unless it was published before."""
    in_order = sorted(staged, key=lambda one: one.task)
    attempts = arrays.TextArray([one.attempt.encode() for one in in_order])
    counts = [one.count for one in in_order]
    batch = (stream, identity.writer, identity.batch_id)
    whose = (identity.query, identity.is_once)
    with session.transaction(url) as database:
        if not any(one.has_rows for one in in_order):
            database.rows(SPARK_PUBLISH, (*batch, *whose, attempts, arrays.BigintArray(counts)))
            return
        is_new = database.value(SPARK_BEGIN_BATCH, (*batch, *whose, sum(counts)))
        published = _publish_chunks(database, url, stream, attempts) if is_new else None
        database.rows(SPARK_END_BATCH, (*batch, attempts, published, sum(counts)))


def _publish_chunks(database: Session, url: str, stream: str, attempts: arrays.TextArray) -> int:
    """Publish what these attempts have staged; how many messages were found."""
    chunks = [_Chunk(*row) for row in database.rows(SPARK_STAGED, (attempts,))]
    # Before a number is drawn by another connection: until this transaction ends, readers stay below it.
    database.rows(SPARK_ENTER, (stream,))
    published = 0
    # A second connection draws numbers ahead, which must not pass those of a chunk that this one publishes.
    for is_encoded, together in groupby(chunks, key=lambda chunk: chunk.is_encoded):
        run = list(together)
        published += _copy(database, url, stream, run) if is_encoded else _append(database, stream, run)
    return published


def _copy(database: Session, url: str, stream: str, chunks: Sequence[_Chunk]) -> int:
    with prepared(url, database, chunks, partial(_placed, stream)) as found:
        return sum(
            database.copy_rows(f"log_{rows.stream_id}_{rows.segment}", log_rows.COLUMNS, rows.content) for rows in found
        )


def _append(database: Session, stream: str, chunks: Sequence[_Chunk]) -> int:
    return sum(
        chunk.count for chunk in chunks if database.rows(SPARK_PUBLISH_CHUNK, (stream, chunk.attempt, chunk.number))
    )


def _placed(stream: str, database: Session, chunk: _Chunk) -> _Rows:
    """Draw the numbers of a chunk, and write them into its rows."""
    ((stream_id, segment, base, partitions, published_at, first_seq, seqs, encoded),) = database.rows(
        SPARK_PLACE_ROWS, (stream, chunk.attempt, chunk.number)
    )
    numbers = np.arange(first_seq, first_seq + chunk.count) if seqs is None else np.array(seqs)
    place = log_rows.Place(numbers, published_at, base, partitions)
    return _Rows(stream_id, segment, log_rows.fill(encoded, chunk.count, place))

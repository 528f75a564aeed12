"""Delivers archived messages to one consumer, even if the log no longer has them."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

import orjson

from postbus.db import session
from postbus.db.arrays import BigintArray, BytesArray, JsonbArray, TextArray
from postbus.model.errors import Conflict
from postbus.pipelines.replay.statements import REPLAY_COPIES
from postbus.pipelines.runtime.run import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def redeliver(run: Run, frame: DataFrame, stream: str, consumer: str, to_seq: int) -> int:
    """Deliver messages, and note that the run has come to a seq; how many the consumer gets.

    Raises:
        Conflict: Another run has taken this one's place.
    """
    rows = sorted(frame.collect(), key=lambda row: row.seq)
    values = [row.data for row in rows]
    is_bytes = any(isinstance(value, bytes | bytearray) for value in values)
    parameters = (
        run.name,
        run.token,
        stream,
        consumer,
        to_seq,
        BigintArray([row.partition for row in rows]),
        BigintArray([row.seq for row in rows]),
        TextArray([_time(row.published_at) for row in rows]),
        TextArray([_text(row.key) for row in rows]),
        None if is_bytes else TextArray([_text(value) for value in values]),
        JsonbArray([None if row.headers is None else orjson.dumps(row.headers) for row in rows]),
        BytesArray([bytes(value) for value in values]) if is_bytes else None,
    )
    with session.transaction(run.url) as database:
        count = database.value(REPLAY_COPIES, parameters)
    if count is None:
        raise Conflict(
            f'another run of pipeline "{run.name}" has begun', "this run stops; nothing was lost or duplicated"
        )
    return int(count)


def _text(value: Any) -> bytes | None:
    return None if value is None else str(value).encode()


def _time(value: Any) -> bytes:
    """Spark gives times without a zone, in that of this machine."""
    return bytes(value.astimezone(UTC).isoformat(), "ascii")

"""Stages and publishes rows as Spark's tasks and driver do, for tests."""

from __future__ import annotations

from typing import Any

import psycopg
import pyarrow

import postbus
from postbus.spark.options import Address, WriteOptions
from postbus.spark.publishing import Staged
from postbus.spark.writer import Writer

ROWS = 1_000
KEYS = ["a", "b.c", "ünicode.schlüssel", None]


def batch(first: int = 0, count: int = ROWS, **columns: Any) -> Any:
    numbers = range(first, first + count)
    keys, data = [KEYS[n % len(KEYS)] for n in numbers], [f'{{ "n": {n}}}' for n in numbers]
    return pyarrow.record_batch({"key": keys, "data": data, **columns})


def batches(count: int) -> list[Any]:
    return [batch(place * ROWS) for place in range(count)]


def writer_for(url: str, stream: str, *, batch_id: int = 0, data_type: str = "json") -> Writer:
    return Writer(WriteOptions(Address(url), stream, "w", batch_id), data_type)


def stage(writer: Writer, frames: list[Any]) -> Staged:
    staged = writer.write(iter(frames))
    assert isinstance(staged, Staged)
    return staged


def numbers(bus: postbus.Bus, stream: str) -> list[int]:
    return [message.data["n"] for message in bus.scan(stream)]


def execute(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def stream_id(url: str, stream: str) -> int:
    ((found,),) = execute(url, f"select postbus_data.stream_id('{stream}')")
    return int(found)


def stored(url: str, stream: str) -> list[Any]:
    return execute(
        url,
        "select seq, partition, key, data::text, headers, expires_at, published_at between now() - interval '1 hour' and now()"
        f" from postbus_data.log_{stream_id(url, stream)}_1 order by seq",
    )

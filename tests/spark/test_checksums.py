"""Spark and tasks in Python find the same checksum for a message."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from postbus.pipelines.archive import manifest
from postbus.spark.archive import lake_schema
from postbus.spark.checksums import checksums
from postbus.spark.compat import arrow_schema

TEXTS = (
    "",
    "a",
    "\\u001f\\\\u001f",
    "é漢🂡",
    '\x00\x1f\x7f\u2028"\\/\b\f\n\r\t',
    "x" * 4,
    "x" * 8,
    "x" * 31,
    "x" * 32,
    "x" * 33,
    "y" * 100_003,
)


def messages(data_type: str) -> list[dict[str, Any]]:
    chance = random.Random(1)
    rows = []
    for number in range(300):
        data: Any = chance.choice(TEXTS) + "z" * chance.randrange(80)
        headers = {chance.choice(TEXTS[:5]) + str(n): chance.choice(TEXTS[:8]) for n in range(chance.randrange(3))}
        rows.append(
            {
                "key": chance.choice([None, *TEXTS[:5], f"orders.{number}"]),
                "data": data.encode() if data_type == "bytes" else data,
                "headers": chance.choice([None, {}, headers]),
                "partition": chance.choice([0, 1, 2**31 - 1]),
                "seq": chance.choice([number, 2**63 - 1 - number]),
                "published_at": datetime(1969, 12, 31, tzinfo=UTC) + timedelta(microseconds=chance.randrange(2**51)),
            }
        )
    return rows


@pytest.mark.parametrize("data_type", ["text", "bytes"])
def test_a_task_and_spark_find_the_same_checksums(spark: Any, tmp_path: Path, data_type: str) -> None:
    import pyarrow
    from pyarrow import parquet

    batch = pyarrow.RecordBatch.from_pylist(messages(data_type), schema=arrow_schema(lake_schema(data_type)))
    parquet.write_table(pyarrow.Table.from_batches([batch]), tmp_path / "messages.parquet")
    frame = manifest.read_files(spark, str(tmp_path), [""], data_type)
    of_spark = {row.seq: row.sum for row in frame.groupBy("seq").agg(manifest.checksum().alias("sum")).collect()}

    assert dict(zip(batch.column("seq").to_pylist(), checksums(batch).tolist(), strict=True)) == of_spark
    # Of a part of a batch, too, whose columns begin in the middle of their buffers.
    assert checksums(batch[7:]).tolist() == checksums(batch).tolist()[7:]
    without = batch.filter(batch.column("headers").is_null())
    assert checksums(without).tolist() == [of_spark[seq] for seq in without.column("seq").to_pylist()]

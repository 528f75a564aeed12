"""Files in a lake: how messages are written to them, what a file holds, and how that is checked."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from pyspark.sql import functions as F  # noqa: N812

from postbus.db.session import Session
from postbus.pipelines.archive.task import HIGH_CARDINALITY, RESULT, ROW_GROUP_BYTES, SliceArchiver
from postbus.spark.archive import lake_schema
from postbus.spark.options import Address
from postbus.spark.slices import Slice
from postbus.spark.statements import ARCHIVE_FILES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_UNLIKE: Final = {f"parquet.enable.dictionary#{name}": "false" for name in HIGH_CARDINALITY}
_MAX_SEQ: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Part:
    """What a file holds of a partition."""

    partition: int
    first_seq: int
    last_seq: int
    message_count: int
    checksum: int


@dataclass(frozen=True, slots=True)
class File:
    """A file, its path relative to the archive's folder, and what it holds."""

    path: str
    bytes: int
    first_published_at: str
    last_published_at: str
    parts: tuple[Part, ...]

    @property
    def message_count(self) -> int:
        return sum(part.message_count for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Listed:
    """A file that the manifest lists."""

    id: int
    path: str
    bytes: int
    message_count: int
    first_seq: int
    last_seq: int
    first_published_at: datetime
    last_published_at: datetime


def listed_files(database: Session, stream: str) -> list[Listed]:
    """All files that the manifest of a stream's archive lists."""
    rows = database.rows(ARCHIVE_FILES, (stream, 0, _MAX_SEQ, None, None))
    return [Listed(*row) for row in rows]


def checksum() -> Column:
    """The checksum of messages, whatever their order."""
    columns = ("seq", "partition", "key", "data", "published_at")
    return F.bit_xor(F.xxhash64(*columns, F.to_json("headers")))


def by_date(frame: DataFrame, key_tokens: int) -> DataFrame:
    """With the columns that folders are named by: the day, in UTC, and on request the first tokens of the key."""
    frame = frame.withColumn("date", F.to_date("published_at"))
    for place in range(key_tokens):
        frame = frame.withColumn(f"key_{place + 1}", F.split("key", "[.]").getItem(place))
    return frame


def folders(key_tokens: int) -> list[str]:
    return ["date", *(f"key_{place + 1}" for place in range(key_tokens))]


def local_path(root: str) -> Path | None:
    """The folder of an archive, if it is one of this machine, or of all machines of a cluster."""
    path = root.removeprefix("file://").removeprefix("file:")
    return None if "://" in path else Path(path)


def archive_slices(
    spark: SparkSession, address: Address, slices: Sequence[Slice], folder: Path, first_seq: int, data_type: str
) -> list[File]:
    """Write slices of a log into a new folder of the lake; what its files hold."""
    if not slices:
        return []
    step = _new_folder(first_seq)
    archiver = SliceArchiver(address, tuple(slices), str(folder), step, data_type)
    rows = spark.range(0, len(slices), 1, len(slices)).mapInArrow(archiver, RESULT).collect()
    files = _files((row.path, row) for row in rows)
    listed = {folder / file.path for file in files}
    for left in (folder / step).rglob("*.parquet"):
        # A task that was killed, and done again.
        if left not in listed:
            left.unlink(missing_ok=True)
    return files


def write_files(frame: DataFrame, root: str, first_seq: int, key_tokens: int) -> str:
    """Write messages into a new folder of the lake, sorted by seq; its name."""
    folder = _new_folder(first_seq)
    columns = folders(key_tokens)
    (
        by_date(frame, key_tokens)
        .sortWithinPartitions(*columns, "seq")
        .write.partitionBy(*columns)
        .option("compression", "zstd")
        .option("parquet.block.size", ROW_GROUP_BYTES)
        .options(**_UNLIKE)
        .mode("error")
        .parquet(f"{root}/{folder}")
    )
    return folder


def _new_folder(first_seq: int) -> str:
    return f"{first_seq:020d}-{secrets.token_hex(4)}"


def read_files(spark: SparkSession, root: str, paths: list[str], data_type: str) -> DataFrame:
    """The messages of files, or of all files of folders."""
    schema = lake_schema(data_type)
    reader = spark.read.schema(schema).option("recursiveFileLookup", "true")
    return reader.parquet(*(f"{root}/{path}" for path in paths))


def describe(frame: DataFrame, root: str) -> list[File]:
    """What the files behind a DataFrame of `read_files` hold, as they lie there."""
    rows = (
        frame.groupBy(
            F.col("_metadata.file_path").alias("path"), F.col("_metadata.file_size").alias("bytes"), "partition"
        )
        .agg(
            F.min("seq").alias("first_seq"),
            F.max("seq").alias("last_seq"),
            F.count("seq").alias("message_count"),
            checksum().alias("checksum"),
            F.unix_micros(F.min("published_at")).alias("first_at"),
            F.unix_micros(F.max("published_at")).alias("last_at"),
        )
        .collect()
    )
    return _files((relative(row.path, root), row) for row in rows)


def relative(uri: str, root: str) -> str:
    """The path of a file below the archive's folder: its folder there, which is unique, and what follows."""
    name = root.rstrip("/").rpartition("/")[2]
    return unquote(uri).rpartition(f"/{name}/")[2]


def _files(rows: Iterable[tuple[str, Any]]) -> list[File]:
    """Files of rows that each say what a file holds of a partition."""
    found: dict[str, list[Any]] = {}
    for path, row in rows:
        found.setdefault(path, []).append(row)
    return [_file(path, of_file) for path, of_file in sorted(found.items())]


def _file(path: str, rows: list[Any]) -> File:
    parts = [Part(r.partition, r.first_seq, r.last_seq, r.message_count, r.checksum) for r in rows]
    return File(
        path,
        rows[0].bytes,
        _moment(min(row.first_at for row in rows)),
        _moment(max(row.last_at for row in rows)),
        tuple(sorted(parts, key=lambda part: part.partition)),
    )


def _moment(microseconds: int) -> str:
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()

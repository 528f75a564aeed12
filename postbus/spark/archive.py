"""The archive of a stream, as far as reading it goes: where its files are and what they hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import types

from postbus.db.session import Session
from postbus.model.errors import NotFound
from postbus.operations import streams

# The consumer by which the archive keeps a stream from letting go of what is not archived.
CONSUMER: Final = "archive"


@dataclass(frozen=True, slots=True)
class Archive:
    """Files below a folder that hold the messages of a stream with start_after < seq <= position_seq."""

    root: str
    start_after: int
    position_seq: int
    file_count: int
    message_count: int
    bytes: int


def find_archive(database: Session, stream: str) -> Archive | None:
    """The archive of a stream, if it has one."""
    rows = database.rows(*streams.archive_info(stream).as_sql())
    return Archive(*rows[0]) if rows else None


def archive_of(database: Session, stream: str) -> Archive:
    """The archive of a stream.

    Raises:
        NotFound: It has none.
    """
    found = find_archive(database, stream)
    if found is None:
        raise NotFound(
            f'stream "{stream}" has no archive', f"make one with: postbus pipeline run archive {stream} --to /path"
        )
    return found


def lake_schema(data_type: str) -> types.StructType:
    """The columns of an archive's files."""
    return types.StructType(
        [
            types.StructField("key", types.StringType()),
            types.StructField("data", types.BinaryType() if data_type == "bytes" else types.StringType()),
            types.StructField("headers", types.MapType(types.StringType(), types.StringType())),
            types.StructField("partition", types.IntegerType()),
            types.StructField("seq", types.LongType()),
            types.StructField("published_at", types.TimestampType()),
        ]
    )


def filesystem(root: str) -> tuple[Any, str]:
    """The file system of a folder, for pyarrow, and the folder's path in it."""
    from pyarrow import fs

    if "://" not in root:
        return fs.LocalFileSystem(), root.removeprefix("file:")
    found = fs.FileSystem.from_uri(root.replace("s3a://", "s3://", 1))
    return found[0], str(found[1])


def missing_files(root: str, paths: Iterable[str]) -> list[str]:
    """Those files of an archive that are not there."""
    from pyarrow import fs

    system, folder = filesystem(root)
    wanted = list(paths)
    found = system.get_file_info([f"{folder}/{path}" for path in wanted])
    return [path for path, info in zip(wanted, found, strict=True) if info.type != fs.FileType.File]

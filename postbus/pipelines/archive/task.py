"""What a task of an archive does: it reads a slice of the log, writes it to files by date, and says what they hold.

The checksums are of what was read from the log, so that `--verify`, which reads the files, proves both.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from pyspark.sql import types

from postbus.db.arrow import read_batches
from postbus.spark import compat
from postbus.spark.archive import lake_schema
from postbus.spark.checksums import checksums
from postbus.spark.columns import Columns
from postbus.spark.errors import without_traceback
from postbus.spark.options import Address
from postbus.spark.slices import Slice

# A row is what a file holds of a partition.
RESULT: Final = types.StructType(
    [
        types.StructField("path", types.StringType()),
        types.StructField("partition", types.IntegerType()),
        *(
            types.StructField(name, types.LongType())
            for name in ("bytes", "first_seq", "last_seq", "message_count", "checksum", "first_at", "last_at")
        ),
    ]
)
# Small enough that a task which wants a part of a file need not read all of it.
ROW_GROUP_BYTES: Final = 8 * 1024 * 1024
# Columns whose values rarely repeat. Looking for repetitions takes a fifth of the time.
HIGH_CARDINALITY: Final = ("data", "seq", "published_at")
_DICTIONARY_COLUMNS: Final = ["key", "partition", "headers.key_value.key", "headers.key_value.value"]
_STATISTICS_COLUMNS: Final = ["key", "partition", "seq", "published_at"]
_COLUMNS: Final = ("key", "data", "headers", "partition", "seq", "published_at")
# Days come one after the other, but for messages that wait for each other around midnight.
_MOST_OPEN: Final = 4
_DAY: Final = 86_400 * 1_000_000


@dataclass(frozen=True, slots=True)
class SliceArchiver:
    """Writes slices of a stream below a folder; Spark calls it with their places."""

    address: Address
    slices: tuple[Slice, ...]
    root: str
    folder: str
    data_type: str

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        schema = compat.arrow_schema(RESULT)
        for batch in batches:
            rows = [row for place in batch.column(0).to_pylist() for row in self.archive(self.slices[place])]
            yield pyarrow.RecordBatch.from_pylist(rows, schema=schema)
        compat.freeze_imports()

    @without_traceback
    def archive(self, part: Slice) -> list[dict[str, Any]]:
        """Write a slice; what its files hold."""
        files = _Files(Path(self.root), self.folder)
        batches = read_batches(self.address.resolve(), part.system, part.range, _COLUMNS, part.messages, by_seq=True)
        try:
            for batch in Columns(lake_schema(self.data_type)).convert(batches):
                files.write(batch)
            return files.close()
        except BaseException:
            files.discard()
            raise


class _Files:
    """The files of a slice: one for each day, or more where days take turns."""

    def __init__(self, root: Path, folder: str) -> None:
        self._root = root
        self._folder = folder
        self._open: dict[int, _File] = {}
        self._closed: list[_File] = []

    def write(self, batch: Any) -> None:
        """Write messages, each to the file of its day."""
        days = batch.column("published_at").cast("int64").to_numpy() // _DAY
        for day in np.unique(days).tolist():
            of_day = days == day
            self._file(day).write(batch if of_day.all() else batch.filter(of_day))

    def close(self) -> list[dict[str, Any]]:
        """Flush all files to disk; what they hold."""
        for day in [*self._open]:
            self._close(day)
        return [row for file in self._closed for row in file.rows()]

    def discard(self) -> None:
        """Delete what was written: nobody will list it."""
        for file in [*self._closed, *self._open.values()]:
            file.path.unlink(missing_ok=True)

    def _file(self, day: int) -> _File:
        if day not in self._open:
            if len(self._open) == _MOST_OPEN:
                self._close(next(iter(self._open)))
            date = datetime.fromtimestamp(day * 86_400, UTC).date()
            self._open[day] = _File(self._root, f"{self._folder}/date={date}/part-{secrets.token_hex(8)}.parquet")
        return self._open[day]

    def _close(self, day: int) -> None:
        # Known before it is closed, so that it is discarded if that fails: the disk may be full.
        self._closed.append(self._open[day])
        self._open.pop(day).close()


@dataclass(frozen=True, slots=True)
class _Part:
    """What a file holds of a partition; times in microseconds."""

    first_seq: int
    last_seq: int
    message_count: int
    checksum: int
    first_at: int
    last_at: int

    def followed_by(self, later: _Part) -> _Part:
        return _Part(
            self.first_seq,
            later.last_seq,
            self.message_count + later.message_count,
            self.checksum ^ later.checksum,
            min(self.first_at, later.first_at),
            max(self.last_at, later.last_at),
        )


class _File:
    """A file that is written, in order of seq."""

    def __init__(self, root: Path, name: str) -> None:
        self.path = root / name
        self._root = root
        self._name = name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._sink = self.path.open("wb")
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._parts: dict[int, _Part] = {}
        self._bytes = 0

    def write(self, batch: Any) -> None:
        self._count(batch)
        self._waiting.append(batch)
        if sum(each.nbytes for each in self._waiting) >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        if self._waiting:
            self._flush()
        self._writer.close()
        self._bytes = self._sink.tell()
        os.fsync(self._sink.fileno())
        self._sink.close()
        # Of a new file a crash may forget the name.
        for folder in (self.path.parent, self.path.parent.parent, self._root):
            _sync(folder)

    def rows(self) -> list[dict[str, Any]]:
        """What it holds of each partition."""
        return [
            {"path": self._name, "bytes": self._bytes, "partition": partition, **asdict(part)}
            for partition, part in self._parts.items()
        ]

    def _flush(self) -> None:
        """Write a row group."""
        import pyarrow
        from pyarrow import parquet

        table = pyarrow.Table.from_batches(self._waiting)
        self._waiting = []
        if self._writer is None:
            self._writer = parquet.ParquetWriter(
                self._sink,
                table.schema,
                compression="zstd",
                use_dictionary=_DICTIONARY_COLUMNS,
                write_statistics=_STATISTICS_COLUMNS,
                store_schema=False,
            )
        self._writer.write_table(table, row_group_size=table.num_rows)

    def _count(self, batch: Any) -> None:
        sums = checksums(batch)
        partitions = batch.column("partition").to_numpy()
        seqs = batch.column("seq").to_numpy()
        times = batch.column("published_at").cast("int64").to_numpy()
        for partition in np.unique(partitions).tolist():
            own = partitions == partition
            found = _Part(
                int(seqs[own][0]),
                int(seqs[own][-1]),
                int(own.sum()),
                int(np.bitwise_xor.reduce(sums[own])),
                int(times[own].min()),
                int(times[own].max()),
            )
            known = self._parts.get(partition)
            self._parts[partition] = found if known is None else known.followed_by(found)


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)

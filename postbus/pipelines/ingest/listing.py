"""Which files there are, what they are, and in which order they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Final, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812

from postbus.model.errors import InvalidInput, NotFound
from postbus.spark.compat import parallelism

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENDINGS: Final = {"json": "json", "jsonl": "json", "ndjson": "json", "csv": "csv", "parquet": "parquet"}
_COMPRESSED: Final = ("gz", "bz2", "zst", "lz4", "snappy", "deflate")
# Files are read side by side in so many parts for each core, each part in order.
_PARTS_PER_CORE: Final = 2


@dataclass(frozen=True, slots=True)
class Listed:
    """A file that lies there."""

    path: str
    bytes: int
    modified_at: str


@dataclass(frozen=True, slots=True)
class Format:
    """What files are; name is None while their own names are to say it."""

    name: str | None
    separator: str = ","
    multiline: bool = False

    def for_files(self, paths: list[str]) -> Format:
        """The format of these files.

        Raises:
            InvalidInput: Their names do not say it.
        """
        if self.name is not None:
            return self
        found = {_format_of(path) for path in paths}
        if len(found) > 1 and None not in found:
            raise InvalidInput(
                f"the files have several formats: {', '.join(sorted(map(str, found)))}",
                "ingest those of one format at a time, such as --files '/in/*.csv'",
            )
        if len(found) != 1 or None in found:
            odd = next((path for path in paths if _format_of(path) is None), paths[0])
            raise InvalidInput(
                f"the names of the files do not say what they are: {odd}", "add --format json, csv or parquet"
            )
        return replace(self, name=found.pop())

    def csv(self) -> dict[str, str]:
        """Spark's options for CSV as most programs write it: quotes are doubled inside quotes."""
        return {
            "header": "true",
            "sep": self.separator,
            "escape": '"',
            "multiLine": str(self.multiline).lower(),
        }


def _format_of(path: str) -> str | None:
    *_, last = parts = path.lower().rpartition("/")[2].split(".")
    ending = parts[-2] if last in _COMPRESSED and len(parts) > 1 else last
    return _ENDINGS.get(ending)


def list_files(spark: SparkSession, source: str, settle: float) -> list[Listed]:
    """The files of a folder and all below it, of a pattern, or one; those that have not changed for so many seconds.

    Raises:
        NotFound: There are none, and there is no such folder.
    """
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    try:
        rows = reader.load(source).select("path", F.unix_micros("modificationTime").alias("at"), "length").collect()
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        raise NotFound(
            f"nothing lies at {source}", "name a file, a folder, or a pattern such as '/in/*.csv'"
        ) from error
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    latest = datetime.now(UTC) - timedelta(seconds=settle)
    found = [(row.path, row.length, epoch + timedelta(microseconds=row.at)) for row in rows]
    return [Listed(path, size, at.isoformat()) for path, size, at in found if not settle or at <= latest]


def in_order(spark: SparkSession, listed: Sequence[Listed]) -> list[list[str]]:
    """Files in parts that follow each other. Spark reads the files of one part in an order of its own."""
    most = sum(file.bytes for file in listed) / (_PARTS_PER_CORE * parallelism(spark))
    parts: list[list[str]] = []
    size = 0.0
    for file in listed:
        if not parts or size + file.bytes > most:
            parts.append([])
            size = 0.0
        parts[-1].append(file.path)
        size += file.bytes
    return parts


_Kind = TypeVar("_Kind")


def parts_in_order(
    spark: SparkSession, listed: Sequence[Listed], groups: list[tuple[_Kind, list[str]]]
) -> list[tuple[_Kind, list[str]]]:
    """Parts of files of one kind, in the order of the files."""
    if len(groups) == 1:
        return [(groups[0][0], part) for part in in_order(spark, listed)]
    kinds = {path: (place, kind) for place, (kind, paths) in enumerate(groups) for path in paths}
    known = [file for file in listed if file.path in kinds]
    runs = [list(run) for _, run in groupby(known, key=lambda file: kinds[file.path][0])]
    return [(kinds[run[0].path][1], part) for run in runs for part in in_order(spark, run)]

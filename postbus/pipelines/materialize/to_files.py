"""Parquet files as the target of materialize: a snapshot after each step, and a file that names the one that counts.

`current.json` names the folder of the snapshot and the position of the stream that it stands for, so both change at once. The
snapshot before stays for those who read it; what a killed run left goes with the next one.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from postbus.model.errors import Conflict, NotFound
from postbus.pipelines.materialize.changes import Decoder, decoded
from postbus.pipelines.materialize.fields import HISTORY, KEY, PUBLISHED_AT, SEQ, Field
from postbus.pipelines.materialize.step_result import StepResult
from postbus.spark.archive import filesystem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_POINTER: Final = "current.json"


@dataclass(frozen=True, slots=True)
class _Manifest:
    """What the pointer says."""

    source: str
    position_seq: int
    fields: tuple[tuple[str, str], ...]
    is_history: bool
    folder: str | None
    previous: str | None
    row_count: int
    written_at: str


def read_snapshot(spark: SparkSession, root: str) -> DataFrame:
    """The rows of the newest snapshot of a stream that was materialized to files.

    Raises:
        NotFound: There is none.
    """
    known = _read(root)
    if known is None or known.folder is None:
        raise NotFound(f"there is no snapshot in {root}", "make one with: postbus pipeline run materialize … --to …")
    return spark.read.parquet(f"{root}/{known.folder}")


class Files:
    """Each step writes all rows anew."""

    def __init__(self, spark: SparkSession, root: str, *, is_history: bool) -> None:
        self._spark = spark
        self._root = root
        self._is_history = is_history
        self._known = _Manifest("", 0, (), is_history, None, None, 0, "")
        self._written: str | None = None
        self._row_count = 0

    def open(
        self, source: str, fields: tuple[Field, ...], start_seq: int, *, again: bool
    ) -> tuple[int, tuple[Field, ...]]:
        """Where the snapshot stands, and the fields that it has."""
        found = _read(self._root)
        if found is not None and not again:
            if found.is_history != self._is_history:
                raise Conflict(
                    f"the files in {self._root} are of the other kind", "choose another folder, or add --again"
                )
            if found.source != source:
                raise Conflict(
                    f"the files in {self._root} were made of another stream, or of another history of this one",
                    "choose another folder, or add --again to begin anew",
                )
            self._known = found
        else:
            pairs = tuple((field.name, field.type) for field in fields)
            keep = None if found is None else found.folder
            self._known = _Manifest(source, start_seq, pairs, self._is_history, None, keep, 0, "")
        self._clean()
        return self._known.position_seq, tuple(Field(*pair) for pair in self._known.fields)

    def take(self, frame: DataFrame, decoder: Decoder) -> StepResult:
        """Write a snapshot with the changes of messages in it."""
        from pyspark.sql import Observation

        seen = Observation()
        is_bad = F.col("problem").isNotNull()
        changes = decoded(frame, replace(decoder, json_as_text=True)).observe(
            seen,
            F.count(F.lit(1)).alias("count"),
            F.count(F.when(is_bad, 1)).alias("bad"),
            F.min(F.when(is_bad, F.struct("seq", "problem"))).alias("first"),
        )
        new = _columns(changes.where(~is_bad), decoder.fields, self._is_history)
        if self._known.folder is not None:
            old = self._spark.read.parquet(f"{self._root}/{self._known.folder}")
            new = new.unionByName(old.withColumn("is_deleted", F.lit(False)), allowMissingColumns=True)
        if decoder.of_records:
            new = _filled(_emptied(new), decoder.fields)
        new = new.drop("kept")
        rows = _versions(new) if self._is_history else _latest(new)
        self._written = f"snapshot-{secrets.token_hex(6)}"
        rows.write.option("compression", "zstd").mode("error").parquet(f"{self._root}/{self._written}")
        self._row_count = self._spark.read.parquet(f"{self._root}/{self._written}").count()
        found = seen.get
        first = found["first"]
        return StepResult(found["count"], found["bad"], *((first["seq"], first["problem"]) if first else (None, None)))

    def commit(self, after_seq: int, to_seq: int, fields: tuple[Field, ...]) -> None:
        """Let the snapshot count."""
        before = _read(self._root)
        if before is not None and self._known.folder is not None and before.folder != self._known.folder:
            raise Conflict(f"another run writes to {self._root}", "this run stops; nothing was lost or duplicated")
        pairs = tuple((field.name, field.type) for field in fields)
        self._known = _Manifest(
            self._known.source,
            to_seq,
            pairs,
            self._is_history,
            self._written,
            self._known.folder or self._known.previous,
            self._row_count,
            datetime.now(UTC).isoformat(),
        )
        _write(self._root, self._known)
        self._clean()

    def abandon(self) -> None:
        """Forget the snapshot that was written."""
        self._clean()

    def close(self) -> None:
        """Nothing is left behind that the next run would not clean up."""

    def _clean(self) -> None:
        """Delete snapshots but the one that counts and the one before it."""
        from pyarrow import fs

        system, root = filesystem(self._root)
        for info in system.get_file_info(fs.FileSelector(root, allow_not_found=True)):
            if info.base_name.startswith("snapshot-") and info.base_name not in (
                self._known.folder,
                self._known.previous,
            ):
                with suppress(FileNotFoundError):
                    system.delete_dir(info.path)


def _columns(changes: DataFrame, fields: tuple[Field, ...], is_history: bool) -> DataFrame:
    """Changes with the columns of the table, and is_deleted."""
    from pyspark.sql import types

    schema = types.StructType([types.StructField(field.name, field.spark_type()) for field in fields])
    row = F.from_json("row", schema, {"timeZone": "UTC"})
    values = [row.getField(field.name).alias(field.name) for field in fields]
    nothing = F.lit(None).cast("timestamp")
    rest = [F.col("published_at").alias(HISTORY[0]), nothing.alias(HISTORY[1])] if is_history else []
    times = rest or [F.col("published_at").alias(PUBLISHED_AT)]
    is_deleted = F.col("row").isNull().alias("is_deleted")
    kept = F.from_json("kept", "ARRAY<STRING>").alias("kept")
    return changes.select(F.col("key").alias(KEY), *values, F.col("seq").alias(SEQ), *times, is_deleted, kept)


def _emptied(rows: DataFrame) -> DataFrame:
    """Rows in which what empties the table ends each key that there was. There are few of them in a step."""
    start = HISTORY[0] if HISTORY[0] in rows.columns else PUBLISHED_AT
    emptying = rows.where(F.col(KEY).isNull()).select(SEQ, start).collect()
    found = rows.where(F.col(KEY).isNotNull())
    keyed = found
    for seq, at in emptying:
        gone = keyed.where(F.col(SEQ) < seq).select(KEY).distinct()
        ends = gone.select(KEY, F.lit(seq).alias(SEQ), F.lit(at).alias(start), F.lit(True).alias("is_deleted"))
        found = found.unionByName(ends, allowMissingColumns=True)
    return found


def _filled(rows: DataFrame, fields: tuple[Field, ...]) -> DataFrame:
    """Rows in which values that a change did not have are those of the change before."""
    from pyspark.sql import Window

    if rows.where(F.col("kept").isNotNull()).isEmpty():
        return rows
    before = Window.partitionBy(KEY).orderBy(SEQ).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    filled = {}
    for field in fields:
        value = F.struct(F.col(f"`{field.name}`").alias("value"))
        is_kept = F.coalesce(F.array_contains("kept", field.name), F.lit(False))
        filled[field.name] = F.last(F.when(~is_kept, value), ignorenulls=True).over(before).getField("value")
    return rows.select(*(filled[name].alias(name) if name in filled else F.col(f"`{name}`") for name in rows.columns))


def _latest(rows: DataFrame) -> DataFrame:
    """Of each key the last, unless it is gone."""
    names = [F.col(f"`{name}`") for name in rows.columns]
    last = rows.groupBy(KEY).agg(F.max_by(F.struct(*names), SEQ).alias("last"))
    return last.select("last.*").where("not is_deleted").drop("is_deleted")


def _versions(rows: DataFrame) -> DataFrame:
    """Every version of each key, with the time from which and to which it held."""
    from pyspark.sql import Window

    start, end, current = HISTORY
    following = F.lead(start).over(Window.partitionBy(KEY).orderBy(SEQ))
    # Of a deletion nothing stays but the end of the version before.
    closed = F.coalesce(F.col(end), F.when(following.isNotNull(), F.greatest(following, F.col(start))))
    found = rows.withColumn(end, closed).where("not is_deleted").drop("is_deleted")
    return found.withColumn(current, F.col(end).isNull())


def _read(root: str) -> _Manifest | None:
    system, folder = filesystem(root)
    try:
        with system.open_input_stream(f"{folder}/{_POINTER}") as file:
            found: dict[str, Any] = json.loads(file.read())
    except FileNotFoundError:
        return None
    return _Manifest(**{**found, "fields": tuple((name, kind) for name, kind in found["fields"])})


def _write(root: str, manifest: _Manifest) -> None:
    """Replace the pointer at once: by a rename on this machine, elsewhere by one upload."""
    system, folder = filesystem(root)
    text = json.dumps(asdict(manifest), indent=1).encode()
    if "://" not in root:
        new = Path(folder) / f"{_POINTER}.new"
        with new.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(Path(folder) / _POINTER)
        return
    with system.open_output_stream(f"{folder}/{_POINTER}") as file:
        file.write(text)

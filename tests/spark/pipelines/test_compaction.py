"""An archive is kept in order while it is written and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus
import postbus.pipelines.archive.manifest as lake_module
from postbus.pipelines import CompactionOptions, CompactionResult, compact_archive, verify_archive
from tests.spark.pipelines.test_archive import files, to_lake
from tests.spark.test_read import publish, read, seqs_of


def tend(spark: Any, url: str, stream: str, **options: Any) -> CompactionResult:
    return compact_archive(url, CompactionOptions(stream=stream, **options), spark=spark)


@pytest.fixture
def published(spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path) -> list[int]:
    """Three steps of an archive, each a file."""
    found: list[int] = []
    for _ in range(3):
        found += publish(bus, stream, 10)
        to_lake(spark, url, stream, tmp_path)
    return found


def test_small_files_become_one_and_nothing_else_changes(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, published: list[int]
) -> None:
    before = files(tmp_path)
    planned = read(spark, url, stream, includeArchive="true")

    assert tend(spark, url, stream) == CompactionResult(compacted=3, into=1, expired=0, deleted=0)
    assert seqs_of(planned) == published
    found = verify_archive(url, stream, spark=spark)
    assert (found.files, found.archived, found.problems) == (1, 30, ())
    assert set(before) < set(files(tmp_path))

    assert tend(spark, url, stream, grace=0).deleted == 6
    assert len(files(tmp_path)) == 1
    assert not set(before) & set(files(tmp_path))
    assert verify_archive(url, stream, spark=spark).problems == ()
    assert seqs_of(read(spark, url, stream, includeArchive="true")) == published


@pytest.mark.slow
def test_files_that_would_not_hold_the_same_are_refused(
    spark: Any, url: str, stream: str, published: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = lake_module.read_files

    def loses_one(spark: Any, root: str, paths: list[str], data_type: str) -> Any:
        return real(spark, root, paths, data_type).where(f"seq <> {published[3]}")

    with monkeypatch.context() as patched:
        patched.setattr(lake_module, "read_files", loses_one)
        with pytest.raises(postbus.Conflict, match="do not hold what the old ones did"):
            tend(spark, url, stream)
    found = verify_archive(url, stream, spark=spark)
    assert (found.files, found.archived, found.problems) == (3, 30, ())


def test_the_lake_drops_old_messages_that_the_log_still_has(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, published: list[int]
) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "update postbus_data.archive_file set last_published_at = now() - interval '10 days' where last_seq <= %s"
            " and stream_id = postbus_data.stream_id(%s)",
            (published[19], stream),
        )

    assert tend(spark, url, stream, keep=86400 * 5).expired == 20
    found = verify_archive(url, stream, spark=spark)
    assert (found.archived, found.from_seq, found.problems) == (10, published[20], ())
    assert seqs_of(read(spark, url, stream, includeArchive="true")) == published
    bus.purge(stream, before_seq=published[25])
    assert seqs_of(read(spark, url, stream, includeArchive="true")) == published[20:]
    assert tend(spark, url, stream, keep=86400 * 5).expired == 0


@pytest.mark.slow
def test_leftovers_of_an_interrupted_step_are_deleted_later(
    spark: Any, url: str, stream: str, tmp_path: Path, published: list[int]
) -> None:
    orphan = tmp_path / stream / "00000000000000000031-dead" / "date=2026-01-01" / "part-0.parquet"
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(files(tmp_path)[0].read_bytes())

    assert tend(spark, url, stream, file_bytes=1).deleted == 0
    assert orphan.exists()
    assert tend(spark, url, stream, file_bytes=1, grace=0).deleted == 1
    assert not orphan.parent.parent.exists()
    assert verify_archive(url, stream, spark=spark).problems == ()


@pytest.mark.slow
def test_a_schema_may_grow(spark: Any, url: str, stream: str, tmp_path: Path, published: list[int]) -> None:
    import pyarrow
    from pyarrow import parquet

    old, new, _ = files(tmp_path)
    parquet.write_table(parquet.read_table(old, partitioning=None).drop(["headers"]), old)
    table = parquet.read_table(new, partitioning=None)
    parquet.write_table(table.append_column("priority", pyarrow.array([1] * table.num_rows)), new)
    for file in (old, new):
        (file.parent / f".{file.name}.crc").unlink()

    assert verify_archive(url, stream, spark=spark).problems == ()
    assert seqs_of(read(spark, url, stream, includeArchive="true")) == published
    # Compacting would lose what this version does not know.
    assert tend(spark, url, stream).compacted == 0

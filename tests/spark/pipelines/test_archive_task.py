"""What tasks of an archive write: each day in its files, sorted by seq, and nothing that nobody lists."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyarrow import parquet

import postbus
from postbus.pipelines import verify_archive
from postbus.pipelines.archive import manifest
from postbus.pipelines.archive.task import SliceArchiver
from tests.spark.pipelines.test_archive import files, to_lake
from tests.spark.test_read import publish, read, seqs_of


def spread_over_days(url: str, stream: str) -> None:
    """Let days take turns, more of them than a task keeps open."""
    with psycopg.connect(url, autocommit=True) as connection:
        tables = connection.execute(
            "select format('postbus_data.log_%%s_%%s', s.stream_id, s.number) from postbus_data.segment as s"
            " where s.stream_id = postbus_data.stream_id(%s)",
            (stream,),
        ).fetchall()
        for (table,) in tables:
            connection.execute(
                f"update {table} set published_at = timestamptz '2026-03-01 12:00Z' + interval '1 day' * (seq % 7)"
            )


def test_each_day_has_its_own_sorted_files(spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path) -> None:
    published = publish(bus, stream, 60)
    spread_over_days(url, stream)

    assert to_lake(spark, url, stream, tmp_path) == 60

    found = verify_archive(url, stream, spark=spark)
    assert (found.archived, found.compared, found.problems) == (60, 60, ())
    assert found.files == len(files(tmp_path)) >= 7
    for path in files(tmp_path):
        # Not with the columns of its folders, which pyarrow would add.
        table = parquet.ParquetFile(path).read()
        seqs = table.column("seq").to_pylist()
        assert seqs == sorted(seqs)
        days = {str(time.date()) for time in table.column("published_at").to_pylist()}
        assert path.parent.name == f"date={days.pop()}"
        assert not days
    bus.purge(stream, everything=True)
    assert seqs_of(read(spark, url, stream, includeArchive="true")) == published


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("/lake/orders", "/lake/orders"),
        ("file:/lake/orders", "/lake/orders"),
        ("file:///lake/orders", "/lake/orders"),
        ("s3a://lake/orders", None),
        ("hdfs://lake/orders", None),
    ],
)
def test_tasks_write_into_folders_of_the_machine(root: str, path: str | None) -> None:
    assert manifest.local_path(root) == (None if path is None else Path(path))


def test_a_file_has_small_row_groups(spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path) -> None:
    # Each is a batch of its own, and two are a group.
    bus.publish_many(stream, [postbus.Message(data="x" * 4_200_000) for _ in range(4)])

    assert to_lake(spark, url, stream, tmp_path) == 4

    (path,) = files(tmp_path)
    assert parquet.ParquetFile(path).metadata.num_row_groups == 2
    assert verify_archive(url, stream, spark=spark).problems == ()


@dataclass(frozen=True)
class DiesOnce:
    """Writes all that it should, and is killed before it can say so; the next attempt is not."""

    archiver: SliceArchiver
    mark: Path

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        rows = list(self.archiver(batches))
        try:
            self.mark.touch(exist_ok=False)
        except FileExistsError:
            yield from rows
        else:
            os._exit(9)


def test_files_of_a_killed_task_are_neither_listed_nor_left(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(bus, stream, 20)
    mark = tmp_path / "was killed"
    with monkeypatch.context() as patched:
        patched.setattr(manifest, "SliceArchiver", lambda *parts: DiesOnce(SliceArchiver(*parts), mark))
        assert to_lake(spark, url, stream, tmp_path / "lake") == 20

    assert mark.exists()
    found = verify_archive(url, stream, spark=spark)
    assert (found.archived, found.problems) == (20, ())
    assert len(files(tmp_path / "lake")) == found.files

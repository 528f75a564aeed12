"""A stream goes to a lake, and what lies there is proved to be all of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus
from postbus.pipelines import ArchiveOptions, Verified, archive_stream, verify_archive
from tests.spark.test_read import publish


def to_lake(spark: Any, url: str, stream: str, lake: Path, **options: Any) -> int:
    return archive_stream(url, ArchiveOptions(stream=stream, to=str(lake), **options), spark=spark)


def files(lake: Path) -> list[Path]:
    return sorted(lake.rglob("*.parquet"))


def info(bus: postbus.Bus, stream: str) -> postbus.PipelineInfo:
    (found,) = [each for each in bus.list_pipelines() if each.stream == stream]
    return found


def test_archive_and_log_together_hold_every_message(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    published = publish(bus, stream, 100)
    bus.publish(stream, data={"no": "key"}, headers={"trace": "ü"})
    assert to_lake(spark, url, stream, tmp_path, batch=60) == 101
    publish(bus, stream, 7)
    assert bus.consumer(stream, "archive").stats().lag_estimate > 0

    found = verify_archive(url, stream, spark=spark)

    assert found == Verified(
        archived=101,
        from_seq=1,
        to_seq=published[-1] + 1,
        files=len(files(tmp_path)),
        compared=101,
        live=7,
        lost_ranges=0,
        problems=(),
    )
    assert all("/date=2" in str(file) for file in files(tmp_path))
    row = spark.read.option("recursiveFileLookup", "true").parquet(str(tmp_path)).where("key is null").collect()[0]
    assert (row.data, row.headers) == ('{"no":"key"}', {"trace": "ü"})


def test_archiving_again_archives_only_new_messages(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    publish(bus, stream, 10)
    assert to_lake(spark, url, stream, tmp_path) == 10
    assert archive_stream(url, ArchiveOptions(stream=stream), spark=spark) == 0
    publish(bus, stream, 5)
    assert archive_stream(url, ArchiveOptions(stream=stream), spark=spark) == 5

    assert verify_archive(url, stream, spark=spark).archived == 15
    known = info(bus, stream)
    assert (known.name, known.state, known.message_count, known.run_count) == (f"archive {stream}", "done", 15, 5)
    assert known.lag_estimate == 0


def test_retention_waits_for_the_archive_and_the_archive_outlives_the_log(
    spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(name, max_messages=5)
    publish(bus, name, 10)
    to_lake(spark, url, name, tmp_path)
    publish(bus, name, 20)
    bus.maintain(name)
    assert len(list(bus.scan(name))) == 20

    to_lake(spark, url, name, tmp_path)
    bus.maintain(name)
    assert len(list(bus.scan(name))) == 5
    found = verify_archive(url, name, spark=spark)
    assert (found.archived, found.compared, found.problems) == (30, 5, ())


def test_a_step_that_was_interrupted_is_taken_again_and_its_files_do_not_count(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import postbus.pipelines.archive.pipeline as module

    publish(bus, stream, 10)
    with monkeypatch.context() as patched:
        patched.setattr(module, "_commit", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            to_lake(spark, url, stream, tmp_path)
    assert info(bus, stream).state == "failed"
    assert "ZeroDivisionError" in (info(bus, stream).last_error or "")
    left = files(tmp_path)

    assert to_lake(spark, url, stream, tmp_path) == 10
    found = verify_archive(url, stream, spark=spark)
    assert (found.archived, found.problems) == (10, ())
    assert found.files == len(files(tmp_path)) - len(left)


@pytest.mark.slow
def test_two_runs_cannot_take_the_same_step(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import postbus.pipelines.archive.pipeline as module

    publish(bus, stream, 10)
    commit = module._commit

    def commit_twice(*arguments: Any) -> int:
        commit(*arguments)
        return commit(*arguments)

    monkeypatch.setattr(module, "_commit", commit_twice)
    with pytest.raises(postbus.Conflict, match="another run is active"):
        to_lake(spark, url, stream, tmp_path)
    assert verify_archive(url, stream, spark=spark).archived == 10


def test_files_that_are_not_what_was_archived_are_found(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    for _ in range(3):
        publish(bus, stream, 10)
        to_lake(spark, url, stream, tmp_path)
    first, second, third = files(tmp_path)
    first.unlink()
    second.write_bytes(third.read_bytes())
    (second.parent / f".{second.name}.crc").unlink(missing_ok=True)

    found = verify_archive(url, stream, spark=spark)

    relative = [str(path.relative_to(tmp_path / stream)) for path in (first, second)]
    assert found.problems == (
        f"the file {relative[0]} is gone",
        f"the file {relative[1]} does not hold what was archived",
    )


@pytest.mark.slow
def test_messages_purged_before_archiving_raise_an_error_or_are_recorded(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    publish(bus, stream, 5)
    to_lake(spark, url, stream, tmp_path)
    lost = publish(bus, stream, 5)
    publish(bus, stream, 5)
    bus.purge(stream, before_seq=lost[-1] + 1)

    with pytest.raises(postbus.Conflict, match=f"from seq {lost[0]} to {lost[-1]} were purged before"):
        to_lake(spark, url, stream, tmp_path)
    assert to_lake(spark, url, stream, tmp_path, allow_loss=True) == 5

    found = verify_archive(url, stream, spark=spark)
    assert (found.archived, found.lost_ranges, found.problems) == (10, 1, ())


def test_an_archive_has_one_folder(spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path) -> None:
    with pytest.raises(postbus.InvalidInput, match="has no archive, and no folder is named"):
        archive_stream(url, ArchiveOptions(stream=stream), spark=spark)
    to_lake(spark, url, stream, tmp_path / "one")
    with pytest.raises(postbus.Conflict, match="is in"):
        to_lake(spark, url, stream, tmp_path / "two")
    with pytest.raises(postbus.NotFound, match="no-such"):
        to_lake(spark, url, "no-such", tmp_path)


@pytest.mark.slow
def test_tokens_of_the_key_may_be_folders_and_bytes_may_be_archived(
    spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(name, data_type="bytes")
    bus.publish(name, key="a%b/c:d.x.1", data=b"\x00\xff")
    bus.publish(name, data=b"")

    assert to_lake(spark, url, name, tmp_path, key_tokens=2) == 2

    found = verify_archive(url, name, spark=spark)
    assert (found.archived, found.compared, found.files, found.problems) == (2, 2, 2, ())
    with psycopg.connect(url) as connection:
        paths = connection.execute("select path from postbus_data.archive_file where path like '%key_1=%'").fetchall()
    assert len(paths) >= 2


@pytest.mark.slow
def test_all_versions_of_a_key_are_archived(spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path) -> None:
    bus.create_stream(name, one_message_per_key=True)
    publish(bus, name, 7)
    publish(bus, name, 7, 7)

    assert to_lake(spark, url, name, tmp_path) == 14
    assert verify_archive(url, name, spark=spark).problems == ()

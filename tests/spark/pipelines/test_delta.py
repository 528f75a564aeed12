"""The folder of an archive is a Delta table, which holds what the manifest lists and nothing else."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pyarrow
import pytest
from deltalake import DeltaTable

import postbus
from postbus.pipelines import ArchiveOptions, CompactionOptions, archive_stream, compact_archive
from postbus.pipelines.archive import delta
from tests.cli.shell import Shell
from tests.spark.pipelines.test_archive import files, info, to_lake
from tests.spark.test_read import publish


def rows(lake: Path, stream: str) -> list[dict[str, Any]]:
    """The table as deltalake reads it, by seq."""
    found = DeltaTable(lake / stream).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: int(row["seq"]))


def seqs(lake: Path, stream: str) -> list[int]:
    return [row["seq"] for row in rows(lake, stream)]


def commit(lake: Path, stream: str, version: int = -1) -> list[tuple[str, bool]]:
    """What a version of the table did: add or remove, and whether it was a change of data."""
    log = sorted((lake / stream / "_delta_log").glob("*.json"))[version]
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    return sorted((kind, at["dataChange"]) for each in actions for kind, at in each.items() if "dataChange" in at)


def test_the_table_has_each_archived_message_once_with_all_it_has(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    publish(bus, stream, 20)
    bus.publish(stream, data={"no": "key"}, headers={"trace": "ü"})
    assert to_lake(spark, url, stream, tmp_path, format="delta", batch=15) == 21
    publish(bus, stream, 5)
    assert seqs(tmp_path, stream) == list(range(1, 22))

    # It stays a Delta table without being told again.
    assert archive_stream(url, ArchiveOptions(stream=stream), spark=spark) == 5

    messages = list(bus.scan(stream))
    assert rows(tmp_path, stream) == [
        {
            "key": message.key,
            "data": json.dumps(message.data, separators=(",", ":")),
            "headers": None if not message.headers else list(message.headers.items()),
            "partition": message.partition,
            "seq": message.seq,
            "published_at": message.published_at,
            "date": message.published_at and message.published_at.date(),
        }
        for message in messages
    ]
    table = DeltaTable(tmp_path / stream)
    assert (table.version(), table.count()) == (3, 26)
    assert [commit(tmp_path, stream, version) for version in (1, 2, 3)] == [[("add", True)]] * 3
    # By these, files are skipped.
    known = sorted(
        pyarrow.table(table.get_add_actions(flatten=True)).to_pylist(), key=lambda file: int(file["min.seq"])
    )
    assert [(file["num_records"], file["min.seq"], file["max.seq"]) for file in known] == [
        (15, 1, 15),
        (6, 16, 21),
        (5, 22, 26),
    ]
    assert known[0]["min.published_at"] == messages[0].published_at
    assert known[2]["max.published_at"] == messages[-1].published_at


def test_an_archive_of_parquet_becomes_a_table_that_compacting_keeps_in_step(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    for _ in range(3):
        publish(bus, stream, 10)
        to_lake(spark, url, stream, tmp_path)
    assert not (tmp_path / stream / "_delta_log").exists()

    assert to_lake(spark, url, stream, tmp_path, format="delta") == 0
    assert seqs(tmp_path, stream) == list(range(1, 31))
    assert compact_archive(url, CompactionOptions(stream=stream), spark=spark).compacted == 3
    assert seqs(tmp_path, stream) == list(range(1, 31))
    assert len(DeltaTable(tmp_path / stream).file_uris()) == 1
    # Who follows the table need not know.
    assert commit(tmp_path, stream) == [("add", False), *[("remove", False)] * 3]

    # Replaced files and folders that nobody lists go; the table's log is not one of them.
    compact_archive(url, CompactionOptions(stream=stream, grace=0), spark=spark)
    assert len(files(tmp_path)) == 1
    assert seqs(tmp_path, stream) == list(range(1, 31))

    with psycopg.connect(url) as connection:
        connection.execute(
            "update postbus_data.archive_file set last_published_at = now() - interval '10 days'"
            " where stream_id = postbus_data.stream_id(%s)",
            (stream,),
        )
    publish(bus, stream, 5)
    to_lake(spark, url, stream, tmp_path)
    assert compact_archive(url, CompactionOptions(stream=stream, keep=86400 * 5, grace=0), spark=spark).expired == 30
    assert seqs(tmp_path, stream) == list(range(31, 36))
    assert commit(tmp_path, stream) == [("remove", True)]


def test_files_listed_before_a_kill_are_in_the_table_after_the_next_run(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = delta.mirror

    def killed_after_a_step(url: str, stream: str, key_tokens: int | None = None) -> None:
        if key_tokens is None:
            raise ZeroDivisionError
        real(url, stream, key_tokens)

    def step(count: int) -> None:
        publish(bus, stream, count)
        with monkeypatch.context() as patched:
            patched.setattr(delta, "mirror", killed_after_a_step)
            with pytest.raises(ZeroDivisionError):
                to_lake(spark, url, stream, tmp_path, format="delta")

    step(10)
    assert seqs(tmp_path, stream) == []
    assert archive_stream(url, ArchiveOptions(stream=stream), spark=spark) == 0
    assert seqs(tmp_path, stream) == list(range(1, 11))

    step(10)
    with monkeypatch.context() as patched:
        patched.setattr(delta, "mirror", lambda *_: None)
        assert compact_archive(url, CompactionOptions(stream=stream), spark=spark).compacted == 2
    assert seqs(tmp_path, stream) == list(range(1, 11))
    assert compact_archive(url, CompactionOptions(stream=stream), spark=spark).compacted == 0
    assert seqs(tmp_path, stream) == list(range(1, 21))
    # One file has what the table had and what it lacked.
    assert commit(tmp_path, stream) == [("add", True), ("remove", True)]


def test_mirrors_that_meet_add_each_file_once_and_none_that_was_replaced(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        publish(bus, stream, 5)
        to_lake(spark, url, stream, tmp_path)
    with psycopg.connect(url) as connection:
        connection.execute(
            "update postbus_data.archive set format = 'delta' where stream_id = postbus_data.stream_id(%s)", (stream,)
        )
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(delta.mirror, url, stream) for _ in range(4)]:
            done.result()
    assert DeltaTable(tmp_path / stream).version() == 1
    assert seqs(tmp_path, stream) == list(range(1, 11))

    real = delta._actions
    slow: list[Any] = []

    def overtaken(*arguments: Any) -> Any:
        """The first one has found out what to do, and meanwhile another step was taken, and all was compacted."""
        found = real(*arguments)
        if not slow:
            slow.append(found)
            assert compact_archive(url, CompactionOptions(stream=stream), spark=spark).compacted == 3
        return found

    publish(bus, stream, 5)
    with monkeypatch.context() as patched:
        patched.setattr(delta, "mirror", lambda *_: None)
        to_lake(spark, url, stream, tmp_path)
    monkeypatch.setattr(delta, "_actions", overtaken)
    delta.mirror(url, stream)
    assert [len(actions) for actions in slow] == [1]
    assert seqs(tmp_path, stream) == list(range(1, 16))
    assert len(DeltaTable(tmp_path / stream).file_uris()) == 1


def test_folders_by_key_are_columns_and_bytes_are_binary(
    spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(name, data_type="bytes")
    bus.publish(name, key="a%b/c:dé.x.1", data=b"\x00\xff")
    bus.publish(name, data=b"")
    lake = tmp_path / "mit Ümlaut"

    assert to_lake(spark, url, name, lake, format="delta", key_tokens=1) == 2

    first, second = rows(lake, name)
    assert (first["key"], first["key_1"], first["data"]) == ("a%b/c:dé.x.1", "a%b/c:dé", b"\x00\xff")
    assert (second["key"], second["key_1"], second["data"]) == (None, None, b"")
    assert DeltaTable(lake / name).to_pyarrow_table(filters=[("key_1", "=", "a%b/c:dé")]).num_rows == 1
    with pytest.raises(postbus.Conflict, match="has the columns date, key_1, and not all files") as refused:
        to_lake(spark, url, name, lake)
    assert "add --key-tokens 1" in str(refused.value.hint)

    bus.publish(name, key="a%b/c:dé.y", data=b"2")
    to_lake(spark, url, name, lake, key_tokens=2)
    compact_archive(url, CompactionOptions(stream=name, grace=0), spark=spark)
    assert [row["key_1"] for row in rows(lake, name)] == ["a%b/c:dé", None, "a%b/c:dé"]


def test_a_stream_without_messages_is_an_empty_table(spark: Any, url: str, stream: str, tmp_path: Path) -> None:
    assert to_lake(spark, url, stream, tmp_path, format="delta", key_tokens=2) == 0
    assert rows(tmp_path, stream) == []
    assert DeltaTable(tmp_path / stream).metadata().partition_columns == ["date", "key_1", "key_2"]
    assert compact_archive(url, CompactionOptions(stream=stream, grace=0), spark=spark).deleted == 0
    assert DeltaTable(tmp_path / stream).version() == 0


def test_an_impossible_delta_table_is_refused_before_anything_is_created(
    shared_spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = ("pipeline", "run", "archive", stream, "--to")
    with pytest.raises(postbus.InvalidInput, match='no format "iceberg"') as refused:
        Shell(url).run(*archive, str(tmp_path), "--format", "iceberg")
    assert refused.value.hint == "it is parquet or delta"
    with pytest.raises(postbus.InvalidInput, match="cannot be a Delta table"):
        Shell(url).run(*archive, str(tmp_path / "a%20b"), "--format", "delta")
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "deltalake", None)
        with pytest.raises(postbus.Error, match="is not installed") as missing:
            Shell(url).run(*archive, str(tmp_path), "--format", "delta")
        assert missing.value.hint == "run: pip install 'postbus[delta]'"
        publish(bus, stream, 3)
        assert Shell(url).run(*archive, str(tmp_path)).out == "3\n"
    assert list(tmp_path.rglob("_delta_log")) == []


def test_a_table_that_cannot_be_written_says_so_and_loses_nothing(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    publish(bus, stream, 3)
    log = tmp_path / stream / "_delta_log"
    log.parent.mkdir()
    log.write_text("in the way")
    with pytest.raises(postbus.Unavailable, match=r"cannot be read or written: [^\n]*Not a directory"):
        to_lake(spark, url, stream, tmp_path, format="delta")
    assert "cannot be read or written" in (info(bus, stream).last_error or "")

    log.unlink()
    assert archive_stream(url, ArchiveOptions(stream=stream), spark=spark) == 3
    assert seqs(tmp_path, stream) == [1, 2, 3]

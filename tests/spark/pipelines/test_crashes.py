"""Postgres crashes or a standby takes over while a stream is archived: lake and log hold each message once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import postbus
from postbus.db import migrations
from postbus.pipelines import CompactionOptions, compact_archive, verify_archive
from tests import servers
from tests.clusters import Cluster
from tests.spark.pipelines.test_archive import to_lake
from tests.waiting import until

STREAM = "orders"


@pytest.fixture
def primary() -> Iterator[Cluster]:
    with servers.data_directory() as folder, Cluster(folder / "a", "pg18") as cluster:
        cluster.create()
        migrations.migrate(cluster.url)
        with postbus.connect(cluster.url) as bus:
            bus.create_stream(STREAM, partitions=2, dedup_window=60, retain_up_to=1, segment_bytes=65536)
        yield cluster


def publish_and_maintain(url: str, begin: int) -> None:
    """Publish forty messages, each twice, and let retention drop what was archived."""
    with postbus.connect(url) as bus:
        for n in range(begin, begin + 40):
            assert not bus.publish(STREAM, key=f"k.{n}", data=n, dedup_id=str(n)).is_duplicate
            assert bus.publish(STREAM, key=f"k.{n}", data=n, dedup_id=str(n)).is_duplicate
        for _ in range(3):
            bus.maintain(STREAM)


def _oldest(bus: postbus.Bus) -> int:
    return next((message.seq or 0 for message in bus.scan(STREAM)), 1 << 62)


def assert_all_there(spark: Any, url: str, count: int) -> None:
    found = verify_archive(url, STREAM, spark=spark)
    rows = (
        spark.read.format("postbus")
        .options(url=url, stream=STREAM, includeArchive="true")
        .load()
        .select("data")
        .collect()
    )
    assert (found.problems, found.lost_ranges, found.archived) == ((), 0, count)
    assert sorted(int(row.data) for row in rows) == list(range(count))


@pytest.mark.parametrize("ending", ["killed", "killed after a checkpoint", "stopped at once"])
def test_after_a_crash_the_archive_continues_and_holds_each_message_once(
    spark: Any, primary: Cluster, tmp_path: Path, ending: str
) -> None:
    for round_ in range(3):
        publish_and_maintain(primary.url, round_ * 40)
        # Half of it before the crash, the rest after it.
        to_lake(spark, primary.url, STREAM, tmp_path, batch=15)
        publish_and_maintain(primary.url, 120 + round_ * 40)
        if ending == "killed after a checkpoint":
            primary.row("checkpoint")
        if ending == "stopped at once":
            primary.stop("immediate")
        else:
            primary.kill()
        primary.start()
        to_lake(spark, primary.url, STREAM, tmp_path, batch=15)

    compact_archive(primary.url, CompactionOptions(stream=STREAM), spark=spark)
    with postbus.connect(primary.url) as bus:
        until(lambda: bus.maintain(STREAM) == 0 and _oldest(bus) > 1, "retention drops what was archived")
    assert_all_there(spark, primary.url, 240)


def test_a_promoted_standby_continues_the_archive_and_holds_each_message_once(
    spark: Any, primary: Cluster, tmp_path: Path
) -> None:
    with Cluster(primary.folder.parent / "b", primary.server) as standby:
        standby.copy_of(primary, "--write-recovery-conf").start()
        publish_and_maintain(primary.url, 0)
        to_lake(spark, primary.url, STREAM, tmp_path, batch=15)
        publish_and_maintain(primary.url, 40)
        standby.has_all_of(primary)
        # The standby never hears of these files: their messages are archived once more.
        standby.stop()
        assert to_lake(spark, primary.url, STREAM, tmp_path, batch=15) == 40
        primary.kill()
        standby.start().promote()

        assert to_lake(spark, standby.url, STREAM, tmp_path, batch=15) == 40
        publish_and_maintain(standby.url, 80)
        to_lake(spark, standby.url, STREAM, tmp_path)
        assert_all_there(spark, standby.url, 120)

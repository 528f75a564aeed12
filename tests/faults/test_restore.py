"""A database is restored to a point in time: what came later is as if it had never been, and all goes on from there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType

import postbus
from postbus.db import migrations
from postbus.spark.source import PostbusDataSource
from tests import servers
from tests.clusters import Cluster
from tests.faults.everything import Everything

SCHEMA = StructType([StructField("seq", LongType(), nullable=False)])
POINT = "select pg_create_restore_point('before')"


@pytest.fixture
def folder() -> Iterator[Path]:
    with servers.data_directory() as folder:
        yield folder


@pytest.fixture
def cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster whose log is archived, with a base backup as it was when Postbus had just been installed."""
    with Cluster(folder / "a", "pg18") as cluster:
        cluster.create()
        cluster.stop()
        cluster.set(archive_mode="on", archive_command=f"test ! -f {folder}/archive/%f && cp %p {folder}/archive/%f")
        cluster.own(folder / "archive")
        cluster.start()
        migrations.migrate(cluster.url)
        yield cluster


@pytest.fixture
def backup(cluster: Cluster, folder: Path) -> Iterator[Cluster]:
    with Cluster(folder / "b", "pg18") as backup:
        yield backup.copy_of(cluster)


def restore(backup: Cluster, cluster: Cluster, folder: Path) -> None:
    """Bring a base backup to where the cluster was at the restore point, and open it."""
    cluster.row("select pg_switch_wal()")
    cluster.stop()
    backup.set(
        archive_mode="off",
        restore_command=f"cp {folder}/archive/%f %p",
        recovery_target_name="before",
        recovery_target_action="promote",
    )
    (backup.data / "recovery.signal").touch()
    backup.start()
    backup.wait_until_promoted()


def test_publishes_and_acks_since_the_restore_point_are_undone_and_repeated(
    cluster: Cluster, backup: Cluster, folder: Path
) -> None:
    with postbus.connect(cluster.url) as bus:
        bus.create_stream("orders", partitions=1, dedup_window=3600)
        bus.create_consumer("orders", "billing", ack_wait=2)
        billing = bus.consumer("orders", "billing")
        for name in ("acked", "leased", "unread"):
            bus.publish("orders", data=name, dedup_id=name)
        bus.publish("orders", data="scheduled", delay=1)
        billing.ack(billing.receive(1))
        leased = billing.receive(1)
        cluster.row(POINT)
        assert billing.ack(leased) == 1
        billing.ack(billing.receive(1))
        bus.publish("orders", data="lost", dedup_id="lost")
        time.sleep(1)
        bus.sweep()
        assert [message.data for message in bus.scan("orders")][-2:] == ["lost", "scheduled"]

    restore(backup, cluster, folder)

    with postbus.connect(backup.url) as bus:
        billing = bus.consumer("orders", "billing")
        bus.sweep()
        assert [message.data for message in bus.scan("orders")] == ["acked", "leased", "unread", "scheduled"]
        received = []
        while batch := billing.receive(10, wait=3):
            received += [delivery.data for delivery in batch]
            assert billing.ack(batch) == len(batch)
        assert sorted(received) == ["leased", "scheduled", "unread"]
        assert bus.publish("orders", data="unread", dedup_id="unread").is_duplicate
        again = bus.publish("orders", data="lost", dedup_id="lost")
        assert not again.is_duplicate
        assert again > 4
        assert billing.ack(leased) == 0


def test_an_offset_of_spark_from_what_was_undone_is_refused(cluster: Cluster, backup: Cluster, folder: Path) -> None:
    with postbus.connect(cluster.url) as bus:
        bus.create_stream("orders")
        bus.publish("orders", data=1)
        cluster.row(POINT)
        bus.publish("orders", data=2)
    options = {"url": cluster.url, "stream": "orders", "startingPosition": "earliest"}
    reader = PostbusDataSource(options).streamReader(SCHEMA)
    offset = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

    restore(backup, cluster, folder)

    with postbus.connect(backup.url) as bus:
        for number in range(100):
            bus.publish("orders", data=number)
    strict = PostbusDataSource({**options, "url": backup.url}).streamReader(SCHEMA)
    with pytest.raises(Exception, match="another history of the database"):
        strict.latestOffset(offset, ReadAllAvailable())
    lenient = PostbusDataSource({**options, "url": backup.url, "failOnDataLoss": "false"}).streamReader(SCHEMA)
    assert lenient.latestOffset(offset, ReadAllAvailable())["timeline"] != offset["timeline"]


def test_every_policy_continues_after_a_restore(cluster: Cluster, backup: Cluster, folder: Path) -> None:
    everything = Everything(cluster.url)
    everything.create()
    everything.round()
    everything.round()
    cluster.row(POINT)

    restore(backup, cluster, folder)

    everything.move_to(backup.url)
    everything.round()
    everything.round()
    everything.check()
    everything.close()

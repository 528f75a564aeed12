"""The server's disk is full, and what was said stays true."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import postbus
from postbus import Message
from postbus.db import migrations
from tests import servers
from tests.clusters import Cluster

SIZE = "80m"


@pytest.fixture
def disk() -> Iterator[Path]:
    """A disk of its own."""
    with servers.data_directory() as folder:
        path = folder / "disk"
        path.mkdir()
        if os.geteuid() != 0:
            pytest.skip("only root may mount a small disk")
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", path], capture_output=True, text=True
        )
        if mounted.returncode:
            pytest.skip(f"a small disk cannot be mounted: {mounted.stderr.strip()}")
        try:
            yield path
        finally:
            subprocess.run(["umount", "--lazy", path], check=True)


@pytest.fixture(params=["tables", "log"])
def cluster(disk: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that has its tables, or its write-ahead log, on the small disk."""
    has_log = request.param == "log"
    with Cluster(disk.parent / "a" if has_log else disk / "a", "pg18") as cluster:
        cluster.create(wal=disk / "wal" if has_log else None)
        cluster.stop()
        cluster.set(max_wal_size="8MB", min_wal_size="2MB", checkpoint_timeout="30s")
        cluster.start()
        migrations.migrate(cluster.url)
        yield cluster


def test_a_full_disk_is_reported_and_nothing_is_lost_once_there_is_room(cluster: Cluster, disk: Path) -> None:
    published: list[int] = []
    acked: list[int] = []
    refusals: list[postbus.Error] = []
    with postbus.connect(cluster.url, pool_size=2, connect_timeout=1) as bus:
        bus.create_stream("orders", partitions=2, dedup_window=60)
        bus.create_consumer("orders", "billing", ack_wait=2)
        billing = bus.consumer("orders", "billing")
        published += bus.publish_many("orders", [Message(data="x") for _ in range(100)])
        acked += take(billing, 10)
        ballast = disk / "ballast"
        fill(ballast, leave=2**20)

        end = time.monotonic() + 30
        while len(refusals) < 5:
            assert time.monotonic() < end, "the disk was never full"
            try:
                published += bus.publish_many("orders", [Message(data="x" * 1000) for _ in range(200)])
            except postbus.Error as error:
                refusals.append(error)
                # There may be room for acks, or not; what was told counts.
                with suppress(postbus.Error):
                    acked += take(billing, 10)
        assert {type(error) for error in refusals} <= {postbus.Unavailable, postbus.ConnectionLost}, refusals
        print([f"{type(e).__name__}: {e}" for e in refusals])

        ballast.unlink()
        if not answers(cluster):
            # Without room for its log Postgres stops, and is started again by whoever watches it.
            cluster.restart()
        published.append(bus.publish("orders", data="after", dedup_id="a"))
        for _ in range(4):
            bus.maintain("orders")
        while taken := take(billing, 1000, wait=3):
            acked += taken

    assert len(acked) == len(set(acked)), "what was acked came again"
    assert set(published) <= set(acked)


def take(billing: postbus.Consumer, count: int, *, wait: float = 0) -> list[int]:
    batch = billing.receive(count, wait=wait)
    assert billing.ack(batch) == len(batch)
    return [delivery.seq for delivery in batch]


def fill(ballast: Path, *, leave: int) -> None:
    free = os.statvfs(ballast.parent)
    size = free.f_bavail * free.f_frsize - leave
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def answers(cluster: Cluster) -> bool:
    with suppress(Exception):
        return cluster.row("select 1") == (1,)
    return False

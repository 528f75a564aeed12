"""The server's clock jumps, and all goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from postbus.db import migrations
from tests import servers
from tests.clusters import Cluster
from tests.faults.everything import Everything

HOUR = 3600


class Clock:
    """Of a server that runs under libfaketime: so many seconds ahead of ours."""

    def __init__(self, file: Path, library: Path) -> None:
        self._file = file
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self.set(0)

    def set(self, seconds: int) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.chmod(0o644)
        new.rename(self._file)


@pytest.fixture
def folder() -> Iterator[Path]:
    with servers.data_directory() as folder:
        yield folder


@pytest.fixture
def clock(folder: Path) -> Clock:
    for library in Path("/usr/lib").glob("*/faketime/libfaketime.so.1"):
        return Clock(folder / "clock", library)
    pytest.skip("no libfaketime: on Debian, apt-get install faketime")


@pytest.fixture
def cluster(folder: Path, clock: Clock) -> Iterator[Cluster]:
    with Cluster(folder / "a", "pg18", environment=clock.environment) as cluster:
        cluster.create()
        migrations.migrate(cluster.url)
        yield cluster


def test_a_clock_that_jumps_ahead_and_back_loses_and_doubles_nothing(cluster: Cluster, clock: Clock) -> None:
    everything = Everything(cluster.url, clock_is_true=False)
    everything.create()
    for seconds in (HOUR, -HOUR, 0):
        everything.round()
        # What is leased or scheduled before a jump back waits for as much longer.
        everything.finish()
        clock.set(seconds)
        assert -60 < seconds - clock_skew(cluster) < 60
        everything.round()
        everything.round()

    everything.check()
    everything.close()


def clock_skew(cluster: Cluster) -> float:
    """How far the server's clock is ahead of ours."""
    (seconds,) = cluster.row("select extract(epoch from clock_timestamp())::float8")
    assert isinstance(seconds, float)
    return seconds - time.time()

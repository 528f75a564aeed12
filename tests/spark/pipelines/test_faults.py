"""Pipelines are killed, disks are full, retention is in a hurry: archive and replay hold each message once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import postbus
from postbus.pipelines import verify_archive
from postbus.spark.java import find_java
from tests import servers
from tests.spark.conftest import ROOT
from tests.spark.pipelines.test_archive import info, to_lake
from tests.spark.test_faults import assert_copied, fill, kill, own_server, wait_until_up
from tests.spark.test_read import publish
from tests.waiting import until

__all__ = ["own_server"]
LATE = "a Python worker did not start in time"
WHAT = ("driver", "python worker", "postgres")
# POSTBUS_FAULT_SEEDS=100 runs more of them.
SEEDS = range(int(os.environ.get("POSTBUS_FAULT_SEEDS", "20")))


@contextmanager
def pipeline(url: str, folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a user runs it, in a process group of its own, once it says that it runs."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": str(find_java()), "POSTBUS_URL": url}
    command = [sys.executable, "-c", "from postbus.cli.main import run; run()", "pipeline", "run", *arguments]
    log = folder / f"log-{time.monotonic_ns()}"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [*command, "--master", "local[2]"],
            env=environment,
            stderr=stderr,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            cwd=folder,
        )
        try:
            until(lambda: '"running"' in log.read_text() or process.poll() is not None, "it runs", seconds=180)
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_and_kill(
    url: str, folder: Path, what: str, server: servers.Server, chance: random.Random, *arguments: str
) -> None:
    """Run a pipeline twice with a kill on the way, and then to its end."""
    for _ in range(2):
        with pipeline(url, folder, *arguments) as process:
            time.sleep(chance.uniform(0, 6))
            if process.poll() is None:
                kill(what, process, server, chance)
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)
        wait_until_up(url)
    failures: list[str] = []
    for _ in range(6):
        with pipeline(url, folder, *arguments) as process:
            if process.wait(300) == 0:
                return
        said = last_log(folder)
        # Spark gives a worker ten seconds to start, and has no setting for it: a busy machine may need longer.
        if LATE not in said:
            failures.append(said[-2000:])
        if len(failures) == 3:
            break
        wait_until_up(url)
    raise AssertionError(f"it does not come to its end: {failures or LATE}")


def last_log(folder: Path) -> str:
    return max(folder.glob("log-*"), key=lambda log: int(log.name.removeprefix("log-"))).read_text()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_pipelines_that_are_run_again_archive_and_replay_each_message_once(
    spark: Any, own_server: servers.Server, tmp_path: Path, seed: int
) -> None:
    what, chance = WHAT[seed % len(WHAT)], random.Random(f"pipelines {seed}")
    with servers.database(own_server.url) as url:
        fill(url, 6000)
        archive = ("archive", "source", "--to", str(tmp_path), "--batch", "700", "--format", "delta")
        run_and_kill(url, tmp_path, what, own_server, chance, *archive)
        found = verify_archive(url, "source", spark=spark)
        assert (found.archived, found.live, found.problems) == (6000, 0, ())
        # The table too has each message once.
        seqs = DeltaTable(tmp_path / "source").to_pyarrow_table(columns=["seq"])["seq"].to_pylist()
        assert (len(seqs), len(set(seqs))) == (6000, 6000)
        with postbus.connect(url) as bus:
            bus.purge("source", everything=True)
        run_and_kill(url, tmp_path, what, own_server, chance, "replay", "source", "--into", "target", "--batch", "700")
        assert_copied(url, 6000)


def test_an_unwritable_folder_is_a_one_line_error(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    publish(bus, stream, 5)

    with pytest.raises(postbus.Unavailable, match="Spark failed: ") as caught:
        to_lake(spark, url, stream, tmp_path / "file" / "lake")

    assert "\tat " not in str(caught.value)
    assert info(bus, stream).state == "failed"
    assert info(bus, stream).last_error == caught.value.message
    assert len(list(bus.scan(stream))) == 5


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.mark.slow
def test_a_full_disk_stops_the_archive_which_continues_when_there_is_room(
    spark: Any, bus: postbus.Bus, url: str, stream: str, tmp_path: Path
) -> None:
    noise = random.Random(1)
    messages = [postbus.Message(key=f"k.{n}", data=noise.randbytes(1000).hex()) for n in range(1000)]
    bus.publish_many(stream, messages)
    with small_disk(tmp_path / "lake", "500k"):
        with pytest.raises(postbus.Unavailable, match="No space left"):
            to_lake(spark, url, stream, tmp_path / "lake")
        assert "No space left" in (info(bus, stream).last_error or "")
        assert bus.consumer(stream, "archive").stats().lag_estimate > 0

        subprocess.run(["mount", "-o", "remount,size=100m", str(tmp_path / "lake")], check=True)
        assert to_lake(spark, url, stream, tmp_path / "lake") == 1000
        assert verify_archive(url, stream, spark=spark).problems == ()


@pytest.mark.slow
def test_retention_racing_the_archive_drops_nothing_unarchived(
    spark: Any, bus: postbus.Bus, url: str, name: str, tmp_path: Path
) -> None:
    bus.create_stream(name, max_messages=10, segment_bytes=65536)
    to_lake(spark, url, name, tmp_path)
    done = threading.Event()

    def hurry() -> None:
        with postbus.connect(url) as own:
            while not done.is_set():
                own.maintain(name)

    thread = threading.Thread(target=hurry)
    thread.start()
    try:
        for step in range(4):
            publish(bus, name, 300, 300 * step)
            to_lake(spark, url, name, tmp_path, batch=170)
    finally:
        done.set()
        thread.join()
    bus.maintain(name)

    found = verify_archive(url, name, spark=spark)
    assert (found.archived, found.lost_ranges, found.problems) == (1200, 0, ())
    assert len(list(bus.scan(name))) == 10

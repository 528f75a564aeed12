"""Drivers, Python workers and Postgres are killed at random points; the target has every message once, in key order."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus
from postbus.spark.java import find_java
from tests import servers
from tests.waiting import until

ROOT = Path(__file__).parents[2]
# How many messages there are, and how many a micro-batch has: tasks with a thousand and more stage them for COPY.
SMALL = (6_000, 500)
LARGE = (60_000, 6_000)
pytestmark = pytest.mark.slow


@pytest.fixture
def own_server() -> Iterator[servers.Server]:
    """A server that the test may kill."""
    with servers.running("pg18") as server:
        yield server


@contextmanager
def copying(
    url: str, checkpoint: Path, per_trigger: int, master: str = "local[2,8]"
) -> Iterator[subprocess.Popen[str]]:
    """A driver that copies "source" to "target", in a process group of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(find_java()),
    }
    names = [url, "source", "target", str(checkpoint), master, str(per_trigger)]
    command = [sys.executable, "-m", "tests.spark.copy_stream", *names]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=ROOT
    ) as driver:
        try:
            yield driver
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)


def kill(what: str, driver: subprocess.Popen[str], server: servers.Server, chance: random.Random) -> None:
    if what == "driver":
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    elif what == "python worker":
        if workers := python_workers(driver.pid):
            with suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
    else:
        assert server.embedded is not None
        pid_file = server.embedded.directory.cluster / "postmaster.pid"
        os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)


def python_workers(driver: int) -> list[int]:
    """The processes of the driver's session in which Spark runs Python; they are not of its group."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            is_worker = b"-m" in words and any(word.startswith(b"pyspark.") for word in words)
            if is_worker and os.getsid(int(process.name)) == driver:
                found.append(int(process.name))
    return sorted(found)


def fill(url: str, count: int) -> None:
    with postbus.connect(url) as bus:
        bus.create_stream("source", partitions=4)
        bus.create_stream("target", partitions=3)
        for start in range(0, count, 6000):
            messages = [postbus.Message(key=f"k.{n % 50}", data=n) for n in range(start, start + 6000)]
            bus.publish_many("source", messages)


def assert_copied(url: str, count: int) -> None:
    with postbus.connect(url) as bus:
        copied = [(message.key, message.data) for message in bus.scan("target")]
    assert len(copied) == count
    assert sum(data for _, data in copied) == count * (count - 1) // 2
    last: dict[Any, int] = {}
    for key, data in copied:
        assert last.get(key, -1) < data
        last[key] = data


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("what", ["driver", "python worker", "postgres"])
@pytest.mark.parametrize(("count", "per_trigger"), [SMALL, LARGE], ids=["small", "large"])
def test_a_query_that_is_killed_and_restarted_copies_each_message_once(
    own_server: servers.Server, tmp_path: Path, what: str, seed: int, count: int, per_trigger: int
) -> None:
    chance = random.Random(f"{what} {seed}")
    with servers.database(own_server.url) as url:
        fill(url, count)
        for _ in range(3):
            with copying(url, tmp_path, per_trigger) as driver:
                assert driver.stdout is not None
                driver.stdout.readline()
                time.sleep(chance.uniform(0, 8))
                if driver.poll() is None:
                    kill(what, driver, own_server, chance)
                with suppress(subprocess.TimeoutExpired):
                    driver.wait(20 if what == "python worker" else 3)
        wait_until_up(url)
        with copying(url, tmp_path, per_trigger) as driver:
            assert driver.wait(180) == 0
        assert_copied(url, count)


def wait_until_up(url: str) -> None:
    def answers() -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(url).close()
            return True
        return False

    until(answers, "the server takes connections")


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of a standalone master with two workers of one core each."""
    import pyspark

    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java()),
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    log = (folder / "log").open("w")
    processes = []

    def launch(role: str, *arguments: str) -> None:
        command = [
            str(spark_class),
            f"org.apache.spark.deploy.{role}",
            "--host",
            "127.0.0.1",
            "--webui-port",
            "0",
            *arguments,
        ]
        processes.append(
            subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        )

    def logged(words: str, count: int = 1) -> bool:
        return (folder / "log").read_text().count(words) >= count

    try:
        port = random.SystemRandom().randrange(20_000, 30_000)
        launch("master.Master", "--port", str(port))
        until(lambda: logged("I have been elected leader"), "the master is up", seconds=120)
        for _ in range(2):
            launch("worker.Worker", "--cores", "1", "--memory", "1g", f"spark://127.0.0.1:{port}")
        until(lambda: logged("Successfully registered with master", 2), "two workers are up", seconds=120)
        yield f"spark://127.0.0.1:{port}"
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.close()


def test_a_standalone_cluster_of_two_workers_copies_each_message_once(
    own_server: servers.Server, tmp_path: Path
) -> None:
    with servers.database(own_server.url) as url, cluster(tmp_path) as master:
        count, per_trigger = SMALL
        fill(url, count)
        with copying(url, tmp_path / "checkpoint", per_trigger, master) as driver:
            assert driver.stdout is not None
            driver.stdout.readline()
            time.sleep(5)
        with copying(url, tmp_path / "checkpoint", per_trigger, master) as driver:
            said, _ = driver.communicate(timeout=240)
        assert driver.returncode == 0
        assert said.split() == ["started", "2"]
        assert_copied(url, count)

"""A real Celery application: its workers are killed, and no task is lost."""

from __future__ import annotations

import os
import random
import secrets
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.faults.http_server import HttpServer
from tests.sqs.clients import client
from tests.sqs.reading import counts
from tests.waiting import until

ROOT = Path(__file__).parents[2]
SENDING = """
import sys
from tests.sqs.celery_app.app import app, note
with app.connection_for_write() as connection, connection.Producer() as producer:
    for number in range(int(sys.argv[1])):
        note.apply_async((number,), producer=producer)
"""


class Workers:
    """Workers of the application, each a process with children of its own."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "celery", "-A", "tests.sqs.celery_app.app", "worker"]
        command += ["--concurrency", "2", "--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR"]
        self._running.append(
            subprocess.Popen(
                command, cwd=ROOT, env=self._environment, start_new_session=True, stderr=subprocess.DEVNULL
            )
        )

    def kill(self, chance: random.Random) -> None:
        """Kill one with its children, in the middle of what they do."""
        _kill(self._running.pop(chance.randrange(len(self._running))))

    def stop(self) -> None:
        while self._running:
            _kill(self._running.pop())


def _kill(worker: subprocess.Popen[bytes]) -> None:
    # It leads a group of its own, which has nothing but its children.
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


@pytest.mark.parametrize(("tasks", "kills"), [(60, 1), pytest.param(10_000, 8, marks=pytest.mark.slow)])
def test_no_task_is_lost_when_workers_are_killed(fresh_url: str, tmp_path: Path, tasks: int, kills: int) -> None:
    chance = random.Random(tasks)
    done = tmp_path / "done"
    done.touch()
    with HttpServer(fresh_url) as server:
        queue = f"celery-{secrets.token_hex(4)}"
        visibility = 3 if tasks < 1000 else 10
        environment = {
            **os.environ,
            "SQS_SERVER": server.url,
            "SQS_QUEUE": queue,
            "SQS_FILE": str(done),
            "SQS_VISIBILITY": str(visibility),
            "SQS_SECONDS": "0.02" if tasks < 1000 else "0.002",
        }
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SENDING, str(tasks)], cwd=ROOT, env=environment, check=True
        )
        sqs = client(server.url)
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
        workers = Workers(environment)
        try:
            for _ in range(2):
                workers.start()
            for kill in range(kills):
                wanted = tasks * (kill + 1) // (2 * kills + 2)
                until(partial(_has, done, wanted), "tasks are handled", seconds=120)
                workers.kill(chance)
                workers.start()
            until(lambda: len(set(_numbers(done))) == tasks, "all tasks are handled", seconds=900 if kills > 1 else 60)
            until(lambda: _is_empty(sqs, url), "nothing is left", seconds=60)
        finally:
            workers.stop()

    # A task that was killed in its middle may come twice: only what a killed worker held.
    assert len(_numbers(done)) < tasks * 1.5


def _has(done: Path, wanted: int) -> bool:
    return len(_numbers(done)) >= wanted


def _numbers(done: Path) -> list[int]:
    return [int(line) for line in done.read_text().splitlines() if line]


def _is_empty(sqs: Any, url: str) -> bool:
    time.sleep(0.2)
    return counts(sqs, url) == (0, 0, 0)

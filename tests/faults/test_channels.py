"""Limits of channels hold, and no turn is skipped, when workers, their connections or the server are killed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import psycopg
import pytest

import postbus
from tests.faults.endings import ENDINGS
from tests.faults.processes import STREAM, Processes
from tests.faults.publish_keys import KEYS
from tests.faults.test_delivery import _TERMINATE
from tests.faults.work import SESSION_NAME
from tests.history import Channels, Recorder
from tests.history.events import Crashed

# Each key is a channel. Half of them are limited, and one has a rate too.
LIMITED: Final = [key for key in KEYS if key.startswith("orders.0.")]
RATED: Final = "orders.1.1"
CHANNELS: Final = Channels(
    of=lambda key: key, max_concurrency=dict.fromkeys(LIMITED, 2) | {"orders.1.3": 1}, rates={RATED: (20, 3)}
)
CONSUMERS: Final = ("fair", "plain")


@pytest.fixture
def processes(own_url: str, tmp_path: Path) -> Iterator[Processes]:
    """A publisher, and three workers of a fair consumer and of one that is not."""
    with postbus.connect(own_url) as bus:
        bus.create_stream(STREAM, partitions=2, channel_tokens=3)
        for consumer in CONSUMERS:
            bus.create_consumer(
                STREAM, consumer, order="none", fair=consumer == "fair", max_deliver=5, backoff=(0, 0.05)
            )
        bus.channels.set(STREAM, "orders.0.*", max_concurrency=2)
        bus.channels.set(STREAM, "orders.1.3", max_concurrency=1)
        bus.channels.set(STREAM, RATED, max_rate=20, burst=3)
    scopes = dict.fromkeys(CONSUMERS)
    with Processes(own_url, tmp_path, seed=random.randrange(2**32), scopes=scopes, channels=CHANNELS) as processes:
        processes.publisher()
        for consumer in CONSUMERS:
            for _ in range(3):
                processes.worker(consumer)
        processes.wait_for_more()
        yield processes


def test_killed_workers_break_no_limit(processes: Processes) -> None:
    kill_workers(processes, 5)
    processes.check_promises()


def test_backends_that_are_ended_break_no_limit(processes: Processes, own_url: str) -> None:
    with psycopg.connect(own_url, autocommit=True) as connection:
        while processes.lost_count() < 20:
            connection.execute(_TERMINATE, (SESSION_NAME,))
            time.sleep(processes.chance.uniform(0, 0.02))
    processes.wait_for_more()
    processes.check_promises()


@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_killed_under_workers_breaks_no_limit(
    processes: Processes, end_server: Callable[[str], None], how: str
) -> None:
    end_servers(processes, end_server, how, 2)
    processes.check_promises()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kills_of_all_kinds_for_minutes_break_no_limit(
    processes: Processes, end_server: Callable[[str], None], own_url: str
) -> None:
    end = time.monotonic() + 150
    while time.monotonic() < end:
        kill_workers(processes, 2)
        with psycopg.connect(own_url, autocommit=True) as connection:
            for _ in range(10):
                connection.execute(_TERMINATE, (SESSION_NAME,))
                time.sleep(processes.chance.uniform(0, 0.02))
        end_servers(processes, end_server, processes.chance.choice(list(ENDINGS)), 1)
    processes.check_promises()


def kill_workers(processes: Processes, rounds: int) -> None:
    for _ in range(rounds):
        for consumer in CONSUMERS:
            victim, *_ = processes.workers(consumer)
            if processes.chance.random() < 0.5:
                processes.kill_at_work(victim)
            else:
                processes.kill(victim)
            processes.worker(consumer)
        processes.wait_for_more()


def end_servers(processes: Processes, end_server: Callable[[str], None], how: str, times: int) -> None:
    with Recorder(processes.directory, f"server-{time.monotonic_ns()}") as recorder:
        for _ in range(times):
            start = time.monotonic()
            end_server(how)
            if how != "fast":
                recorder.record(Crashed(start=start, end=time.monotonic()))
            processes.wait_for_more()

"""Priorities when workers, sweepers and connections are killed: urgent messages go first, and nothing else changes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
import pytest

import postbus
from postbus import Message
from tests.faults.processes import STREAM, Processes
from tests.faults.work import SESSION_NAME
from tests.history import Scope, by_key_and_level

_SCOPES: Final[dict[str, Scope | None]] = {"key": by_key_and_level, "none": None}
_TERMINATE: Final = """
select pg_terminate_backend(a.pid)
from pg_stat_activity as a
where a.datname = current_database() and a.application_name = %s
order by a.state = 'active' desc, random()
limit 1
"""


@pytest.fixture
def processes(own_url: str, tmp_path: Path) -> Iterator[Processes]:
    """A publisher of messages of four levels, and three workers of a consumer in each order that knows levels."""
    with postbus.connect(own_url) as bus:
        bus.create_stream(STREAM, partitions=3)
        for order in _SCOPES:
            bus.create_consumer(STREAM, order, order=order, max_deliver=5, backoff=(0, 0.05))  # type: ignore[arg-type]
        # There is always something of the default level, which the short way would give.
        bus.publish_many(STREAM, [Message(key=f"orders.{n}", data=None) for n in range(6000)])
        bus.publish(STREAM, key="orders.x", data=None, priority=9)
        bus.maintain()
    seed = random.randrange(2**32)
    with Processes(own_url, tmp_path, seed=seed, scopes=_SCOPES, priorities=(1, 4, 4, 4, 7, 9)) as started:
        started.publisher()
        for consumer in _SCOPES:
            for _ in range(3):
                started.worker(consumer)
        started.wait_for_more()
        yield started


def test_urgent_messages_go_first_while_workers_are_killed(processes: Processes, own_url: str) -> None:
    with postbus.connect(own_url) as bus:
        for _ in range(5):
            for consumer in _SCOPES:
                victim, *_ = processes.workers(consumer)
                if processes.chance.random() < 0.5:
                    processes.kill_at_work(victim)
                else:
                    processes.kill(victim)
                processes.worker(consumer)
            processes.wait_for_more()
            bus.maintain()

    processes.check_promises()


def test_urgent_messages_go_first_while_backends_are_ended(processes: Processes, own_url: str) -> None:
    with psycopg.connect(own_url, autocommit=True) as connection:
        while processes.lost_count() < 20:
            connection.execute(_TERMINATE, (SESSION_NAME,))
            time.sleep(processes.chance.uniform(0, 0.02))
    processes.wait_for_more()

    processes.check_promises()

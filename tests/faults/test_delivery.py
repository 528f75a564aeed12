"""What a consumer promises stays true when its workers, their connections, the sweeper or the server are killed."""

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
from tests.faults.processes import SCOPES, STREAM, Processes
from tests.faults.proxy import Proxy
from tests.faults.publish_keys import PATTERN
from tests.faults.work import LONGEST_LEASE, SESSION_NAME
from tests.history import Recorder
from tests.history.events import Crashed

# One at work rather than one that is idle.
_TERMINATE: Final = """
select pg_terminate_backend(a.pid)
from pg_stat_activity as a
where a.datname = current_database() and a.application_name = %s
order by a.state = 'active' desc, random()
limit 1
"""


@pytest.fixture
def idle_processes(own_url: str, tmp_path: Path) -> Iterator[Processes]:
    """Nobody yet; a stream and a consumer of each order."""
    with postbus.connect(own_url) as bus:
        bus.create_stream(STREAM, partitions=4)
    with Processes(own_url, tmp_path, seed=random.randrange(2**32)) as processes, postbus.connect(own_url) as bus:
        for consumer in SCOPES:
            # Some want half of the keys.
            wanted = processes.chance.choice((None, PATTERN))
            bus.create_consumer(STREAM, consumer, order=consumer, filter=wanted, max_deliver=5, backoff=(0, 0.05))  # type: ignore[arg-type]
        yield processes


@pytest.fixture
def processes(idle_processes: Processes) -> Processes:
    """A publisher and three workers of each consumer, at work."""
    idle_processes.publisher()
    for consumer in SCOPES:
        for _ in range(3):
            idle_processes.worker(consumer)
    idle_processes.wait_for_more()
    return idle_processes


def test_killed_and_stopped_runs_lose_nothing(idle_processes: Processes) -> None:
    idle_processes.publisher()
    for consumer in SCOPES:
        for _ in range(2):
            idle_processes.runner(consumer)
    for _ in range(2):
        idle_processes.wait_for_more()
        for consumer in SCOPES:
            victim, *_ = idle_processes.workers(consumer)
            idle_processes.kill(victim)
            # Until it has begun it does not know how to stop.
            idle_processes.wait_for_lines(idle_processes.runner(consumer), 1)

    idle_processes.check_promises()


def test_killed_workers_lose_nothing(processes: Processes) -> None:
    for _ in range(5):
        for consumer in SCOPES:
            victim, *_ = processes.workers(consumer)
            if processes.chance.random() < 0.5:
                processes.kill_at_work(victim)
            else:
                processes.kill(victim)
            processes.worker(consumer)
        processes.wait_for_more()

    processes.check_promises()


def test_workers_whose_backends_are_ended_lose_nothing(processes: Processes, own_url: str) -> None:
    with psycopg.connect(own_url, autocommit=True) as connection:
        while processes.lost_count() < 30:
            connection.execute(_TERMINATE, (SESSION_NAME,))
            time.sleep(processes.chance.uniform(0, 0.02))
    processes.wait_for_more()

    processes.check_promises()


def test_a_killed_sweeper_loses_nothing(processes: Processes) -> None:
    for _ in range(10):
        sweeper = processes.sweeper()
        processes.wait_for_lines(sweeper, 3)
        time.sleep(processes.chance.uniform(0, 0.02))
        processes.kill(sweeper)
    processes.wait_for_more()

    processes.check_promises()


def test_other_numbers_of_partitions_lose_nothing_and_keep_the_order(processes: Processes, own_url: str) -> None:
    for _ in range(2):
        processes.publisher()
    with postbus.connect(own_url) as bus:
        bus.alter_stream(STREAM, segment_bytes=65536, max_messages=100_000)
        for partitions in (7, 2, 1, 5):
            bus.alter_stream(STREAM, partitions=partitions)
            victim, *_ = processes.workers(processes.chance.choice(list(SCOPES)))
            processes.kill(victim)
            processes.worker(victim.split("-")[1])
            processes.wait_for_more()
            bus.maintain()

    processes.check_promises()


@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_killed_under_workers_keeps_everything_it_confirmed(
    processes: Processes, end_server: Callable[[str], None], how: str
) -> None:
    with Recorder(processes.directory, "server") as recorder:
        for _ in range(2):
            start = time.monotonic()
            end_server(how)
            if how != "fast":
                recorder.record(Crashed(start=start, end=time.monotonic()))
            processes.wait_for_more()

    processes.check_promises()


@pytest.mark.parametrize("fault", ["cut", "hang", "hang, then cut", "delay"])
def test_a_bad_network_before_some_workers_loses_nothing(processes: Processes, own_url: str, fault: str) -> None:
    with Proxy(own_url) as proxy:
        behind = [processes.worker(consumer, url=proxy.url) for consumer in SCOPES]
        proxy.delay(LONGEST_LEASE / 50 if fault == "delay" else 0)
        for _ in range(3):
            for name in behind:
                processes.wait_for_lines(name, 3)
            if "hang" in fault:
                proxy.hang()
                # Leases end while their acks are on the way.
                time.sleep(processes.chance.uniform(0, LONGEST_LEASE))
            if "cut" in fault:
                proxy.cut_all()
            proxy.resume()
        processes.wait_for_more()

        processes.check_promises()

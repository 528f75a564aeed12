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
from tests.faults.conftest import ENDINGS
from tests.faults.crew import SCOPES, STREAM, Crew
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
def idle_crew(own_url: str, tmp_path: Path) -> Iterator[Crew]:
    """Nobody yet; a stream and a consumer of each order."""
    with postbus.connect(own_url) as bus:
        bus.create_stream(STREAM, partitions=4)
    with Crew(own_url, tmp_path, seed=random.randrange(2**32)) as crew, postbus.connect(own_url) as bus:
        for consumer in SCOPES:
            # Some want half of the keys.
            wanted = crew.chance.choice((None, PATTERN))
            bus.create_consumer(STREAM, consumer, order=consumer, filter=wanted, max_deliver=5, backoff=(0, 0.05))  # type: ignore[arg-type]
        yield crew


@pytest.fixture
def crew(idle_crew: Crew) -> Crew:
    """A publisher and three workers of each consumer, at work."""
    idle_crew.publisher()
    for consumer in SCOPES:
        for _ in range(3):
            idle_crew.worker(consumer)
    idle_crew.wait_for_more()
    return idle_crew


def test_killed_and_stopped_runs_lose_nothing(idle_crew: Crew) -> None:
    idle_crew.publisher()
    for consumer in SCOPES:
        for _ in range(2):
            idle_crew.runner(consumer)
    for _ in range(2):
        idle_crew.wait_for_more()
        for consumer in SCOPES:
            victim, *_ = idle_crew.workers(consumer)
            idle_crew.kill(victim)
            # Until it has begun it does not know how to stop.
            idle_crew.wait_for_lines(idle_crew.runner(consumer), 1)

    idle_crew.check_promises()


def test_killed_workers_lose_nothing(crew: Crew) -> None:
    for _ in range(5):
        for consumer in SCOPES:
            victim, *_ = crew.workers(consumer)
            if crew.chance.random() < 0.5:
                crew.kill_at_work(victim)
            else:
                crew.kill(victim)
            crew.worker(consumer)
        crew.wait_for_more()

    crew.check_promises()


def test_workers_whose_backends_are_ended_lose_nothing(crew: Crew, own_url: str) -> None:
    with psycopg.connect(own_url, autocommit=True) as connection:
        while crew.lost_count() < 30:
            connection.execute(_TERMINATE, (SESSION_NAME,))
            time.sleep(crew.chance.uniform(0, 0.02))
    crew.wait_for_more()

    crew.check_promises()


def test_a_killed_sweeper_loses_nothing(crew: Crew) -> None:
    for _ in range(10):
        sweeper = crew.sweeper()
        crew.wait_for_lines(sweeper, 3)
        time.sleep(crew.chance.uniform(0, 0.02))
        crew.kill(sweeper)
    crew.wait_for_more()

    crew.check_promises()


def test_other_numbers_of_partitions_lose_nothing_and_keep_the_order(crew: Crew, own_url: str) -> None:
    for _ in range(2):
        crew.publisher()
    with postbus.connect(own_url) as bus:
        bus.alter_stream(STREAM, segment_bytes=65536, max_messages=100_000)
        for partitions in (7, 2, 1, 5):
            bus.alter_stream(STREAM, partitions=partitions)
            victim, *_ = crew.workers(crew.chance.choice(list(SCOPES)))
            crew.kill(victim)
            crew.worker(victim.split("-")[1])
            crew.wait_for_more()
            bus.maintain()

    crew.check_promises()


@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_killed_under_workers_keeps_everything_it_confirmed(
    crew: Crew, end_server: Callable[[str], None], how: str
) -> None:
    with Recorder(crew.directory, "server") as recorder:
        for _ in range(2):
            start = time.monotonic()
            end_server(how)
            if how != "fast":
                recorder.record(Crashed(start=start, end=time.monotonic()))
            crew.wait_for_more()

    crew.check_promises()


@pytest.mark.parametrize("fault", ["cut", "hang", "hang, then cut", "delay"])
def test_a_bad_network_before_some_workers_loses_nothing(crew: Crew, own_url: str, fault: str) -> None:
    with Proxy(own_url) as proxy:
        behind = [crew.worker(consumer, url=proxy.url) for consumer in SCOPES]
        proxy.delay(LONGEST_LEASE / 50 if fault == "delay" else 0)
        for _ in range(3):
            for name in behind:
                crew.wait_for_lines(name, 3)
            if "hang" in fault:
                proxy.hang()
                # Leases end while their acks are on the way.
                time.sleep(crew.chance.uniform(0, LONGEST_LEASE))
            if "cut" in fault:
                proxy.cut_all()
            proxy.resume()
        crew.wait_for_more()

        crew.check_promises()

"""What a server has answered stays true when it is killed, or its Postgres ends."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import postbus
from tests.faults.http_server import HttpServer
from tests.faults.ledger import Ledger
from tests.faults.processes import SCOPES, STREAM, Processes
from tests.faults.publishers import Publisher
from tests.server.serving import serving
from tests.waiting import until

_FEW_AND_MANY = [1, pytest.param(10, marks=pytest.mark.slow)]


@pytest.fixture
def http_server(own_url: str) -> Iterator[HttpServer]:
    """A server that can be killed."""
    with HttpServer(own_url) as server:
        yield server


@pytest.mark.parametrize("kills", _FEW_AND_MANY)
def test_a_killed_server_loses_nothing_of_what_it_answered(
    own_url: str, tmp_path: Path, http_server: HttpServer, kills: int
) -> None:
    with postbus.connect(own_url) as bus:
        bus.create_stream(STREAM, partitions=4)
        for consumer in SCOPES:
            bus.create_consumer(STREAM, consumer, order=consumer, max_deliver=5, backoff=(0, 0.05))  # type: ignore[arg-type]
    with Processes(own_url, tmp_path, seed=random.randrange(2**32)) as processes:
        processes.publisher(url=http_server.url)
        for consumer in SCOPES:
            for _ in range(min(kills, 2)):
                processes.worker(consumer, url=http_server.url)
        processes.wait_for_more()
        for _ in range(kills):
            time.sleep(processes.chance.uniform(0, 0.1))
            http_server.kill()
            http_server.start()
            processes.wait_for_more()

        processes.check_promises()


@pytest.mark.slow
def test_a_worker_continues_when_the_server_comes_back(own_url: str, orders: str, http_server: HttpServer) -> None:
    handled: Counter[int] = Counter()
    with postbus.connect(own_url) as direct, postbus.connect(http_server.url) as bus:
        direct.create_consumer(orders, "billing", ack_wait=12)
        direct.publish_many(orders, [postbus.Message(key=f"k.{n % 50}", data=n) for n in range(2000)])

        def handle(delivery: postbus.Delivery) -> None:
            time.sleep(0.005)
            handled[delivery.data] += 1

        worker = postbus.Worker(bus.consumer(orders, "billing"), handle, concurrency=4, install_signal_handlers=False)
        thread = threading.Thread(target=worker.run)
        thread.start()
        for goal in (300, 800, 1300):
            until(lambda goal=goal: len(handled) >= goal, f"{goal} messages are handled", seconds=60)  # type: ignore[misc]
            http_server.kill()
            time.sleep(1)
            http_server.start()
        until(lambda: len(handled) == 2000, "all are handled", seconds=60)
        worker.stop()
        thread.join(30)

        assert not thread.is_alive()
        stats = direct.consumer(orders, "billing").stats()
    assert (stats.lag_estimate, stats.waiting, stats.dead) == (0, 0, 0)
    # What was acked shortly before a kill may come again, and nothing else.
    assert handled.total() < 2000 + 3 * 200


@pytest.mark.parametrize("endings", _FEW_AND_MANY)
def test_a_postgres_that_ends_under_load_is_503_with_a_hint_and_service_resumes(
    own_url: str, orders: str, end_server: Callable[[str], None], endings: int
) -> None:
    with serving(own_url, connect_timeout=0.5) as api:
        publishers = [Publisher(api.url, orders, name=f"publisher{n}", connect_timeout=5) for n in range(8)]
        for publisher in publishers:
            publisher.start()
        for ending in range(endings):
            _wait_for_more(publishers)
            end_server(("immediate", "fast", "killed")[ending % 3])
            _wait_for_more(publishers)
        ledger = Ledger()
        for publisher in publishers:
            ledger.add(publisher.stop())
    errors = [error for publisher in publishers for error in publisher.errors]

    assert ledger.refused, "somebody was told that nothing was done"
    assert all(error.hint for error in errors)
    # The server was there all the time: it is Postgres that was not.
    assert [error.message for error in errors if api.url in error.message] == []
    with postbus.connect(own_url) as bus:
        until(lambda: bus.horizon(orders) == bus.stream_info(orders).last_seq, "nobody holds the horizon")
        ledger.settle(list(bus.scan(orders)))


def _wait_for_more(publishers: list[Publisher]) -> None:
    goals = [publisher.count + 5 for publisher in publishers]
    until(
        lambda: all(publisher.count >= goal for publisher, goal in zip(publishers, goals, strict=True)),
        "all have published more",
        seconds=60,
    )

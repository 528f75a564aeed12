"""A worker that is stopped, killed, hung or cut off loses nothing."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message
from tests.faults.run_worker import SESSION_NAME, run_worker
from tests.waiting import until

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    [
        "tests.faults.run_worker",
        *("postbus.client._sync.connect", "postbus.transport._sync.postgres", "postbus.worker._sync.worker"),
        *("postbus.client._async.connect", "postbus.transport._async.postgres", "postbus.worker._async.worker"),
    ]
)

both_kinds = pytest.mark.parametrize("kind", ["sync", "async"])


@pytest.fixture
def bus(own_url: str) -> Iterator[postbus.Bus]:
    with postbus.connect(own_url) as bus:
        bus.create_stream("orders", partitions=4)
        yield bus


class Workers:
    """Processes that run workers of consumer "c", and what they wrote."""

    def __init__(self, url: str, path: Path) -> None:
        self._url = url
        self.path = path
        self.processes: list[BaseProcess] = []

    def start(self, kind: str, *, handler_seconds: float = 0, **settings: Any) -> BaseProcess:
        arguments = (self._url, "orders", kind, self.path, handler_seconds, settings)
        process = _processes.Process(target=run_worker, args=arguments, daemon=True)
        process.start()
        self.processes.append(process)
        return process

    def lines(self, word: str) -> list[str]:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [line.removeprefix(f"{word} ") for line in lines if line.startswith(f"{word} ")]

    def numbers(self, word: str) -> list[int]:
        return [int(line.split()[0]) for line in self.lines(word)]

    def wait_for(self, word: str, count: int) -> None:
        until(lambda: len(self.lines(word)) >= count, f"{count} × {word}")


@pytest.fixture
def workers(own_url: str, tmp_path: Path) -> Iterator[Workers]:
    workers = Workers(own_url, tmp_path / "lines")
    yield workers
    for process in workers.processes:
        process.kill()
        process.join()


def publish(bus: postbus.Bus, count: int, *, keys: int = 10) -> None:
    bus.publish_many("orders", [Message(key=f"k{n % keys}", data=n) for n in range(count)])


def is_finished(consumer: postbus.Consumer) -> bool:
    stats = consumer.stats()
    return (stats.lag_estimate, stats.in_flight, stats.waiting) == (0, 0, 0)


def end(process: BaseProcess) -> None:
    process.join(30)
    assert process.exitcode == 0


@both_kinds
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_worker_finish_what_runs_and_give_back_the_rest(
    bus: postbus.Bus, workers: Workers, kind: str, number: signal.Signals
) -> None:
    consumer = bus.create_consumer("orders", "c")
    publish(bus, 2000)
    process = workers.start(kind, handler_seconds=0.005, concurrency=4)
    workers.wait_for("ended", 40)

    os.kill(process.pid or 0, number)
    end(process)

    began, ended = workers.numbers("began"), workers.numbers("ended")
    assert sorted(began) == sorted(ended)
    assert workers.lines("acked") == [str(len(ended))]
    assert consumer.stats().in_flight == 0
    rest: list[int] = []
    while batch := consumer.receive(10_000):
        rest += [delivery.data for delivery in batch]
        consumer.ack(batch)
    assert sorted(ended + rest) == list(range(2000))


@both_kinds
def test_a_second_signal_makes_the_worker_leave_at_once(bus: postbus.Bus, workers: Workers, kind: str) -> None:
    consumer = bus.create_consumer("orders", "c", ack_wait=60)
    publish(bus, 1)
    process = workers.start(kind, handler_seconds=3600, grace=3600)
    workers.wait_for("began", 1)

    os.kill(process.pid or 0, signal.SIGTERM)
    process.join(0.3)
    assert process.exitcode is None, "it waits for what runs"
    os.kill(process.pid or 0, signal.SIGTERM)
    end(process)

    (again,) = consumer.receive(wait=5)
    assert (again.data, again.attempt) == (0, 2)


@both_kinds
def test_messages_of_a_killed_worker_are_handled_by_another(bus: postbus.Bus, workers: Workers, kind: str) -> None:
    consumer = bus.create_consumer("orders", "c", ack_wait=0.5)
    publish(bus, 300)
    victim = workers.start(kind, handler_seconds=0.002, concurrency=4)
    workers.wait_for("ended", 50)
    victim.kill()
    victim.join()

    workers.start(kind, concurrency=4)
    until(lambda: is_finished(consumer), "all is handled")

    assert set(workers.numbers("ended")) == set(range(300))
    for key in range(10):
        numbers = [n for n in workers.numbers("began") if n % 10 == key]
        firsts = list(dict.fromkeys(numbers))
        assert firsts == sorted(firsts), "the key's messages were first handled in order"


@both_kinds
def test_a_worker_whose_sessions_are_ended_continues(
    bus: postbus.Bus, workers: Workers, kind: str, own_url: str
) -> None:
    consumer = bus.create_consumer("orders", "c", ack_wait=0.5)
    publish(bus, 1000)
    process = workers.start(kind, handler_seconds=0.005, concurrency=8)
    with psycopg.connect(own_url, autocommit=True) as connection:
        for count in range(50, 301, 50):
            workers.wait_for("ended", count)
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s", (SESSION_NAME,)
            )
    until(lambda: is_finished(consumer), "all is handled")
    process.terminate()
    end(process)

    assert set(workers.numbers("ended")) == set(range(1000))


@both_kinds
def test_a_worker_outlives_a_restart_of_the_server(
    bus: postbus.Bus, workers: Workers, kind: str, end_server: Callable[[str], None]
) -> None:
    bus.create_consumer("orders", "c", ack_wait=1)
    publish(bus, 300)
    process = workers.start(kind, handler_seconds=0.005, concurrency=4)
    workers.wait_for("ended", 50)
    end_server("fast")

    until(lambda: set(workers.numbers("ended")) == set(range(300)), "all is handled")
    process.terminate()
    end(process)


def test_a_worker_that_was_frozen_gives_up_what_it_lost(bus: postbus.Bus, workers: Workers) -> None:
    """Its leases end meanwhile: what comes back to life must neither ack nor start what somebody else has by now."""
    consumer = bus.create_consumer("orders", "c", ack_wait=0.5)
    publish(bus, 40, keys=4)
    frozen = workers.start("sync", handler_seconds=0.02, concurrency=4)
    workers.wait_for("ended", 8)
    os.kill(frozen.pid or 0, signal.SIGSTOP)
    until(lambda: _is_stopped(frozen.pid or 0), "it is frozen")

    begun = set(workers.numbers("began"))
    running = begun - set(workers.numbers("ended"))
    taken: list[postbus.Delivery] = []
    while batch := consumer.receive(1000, wait=1, ack_wait=60):
        taken += batch
    os.kill(frozen.pid or 0, signal.SIGCONT)
    bus.publish("orders", key="new", data=40)
    until(lambda: 40 in workers.numbers("ended"), "it works again")
    frozen.terminate()
    end(frozen)

    # A slot may have taken a message when it froze, and not yet have written so. Of what waited, nothing is begun.
    late = set(workers.numbers("began")) - begun - {40}
    assert len(late) + len(running) <= 4
    assert consumer.ack(taken) == len(taken)
    assert begun | {delivery.data for delivery in taken} >= set(range(40))
    assert is_finished(consumer)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

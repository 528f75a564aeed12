"""A worker and time: heartbeats, deadlines, waiting for messages, and stopping."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from typing import Any

import pytest

import postbus
from postbus import Delivery
from tests.integration.workers import Seen, assert_empty, publish, run, worker_of

# Nothing here depends on the version of the server.
pytestmark = pytest.mark.parametrize("server", ["pg18"], indirect=True)


@pytest.fixture
async def consumer(bus: Any, stream: str) -> Any:
    return await bus.create_consumer(stream, "c")


async def test_heartbeats_keep_what_runs_and_what_waits(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", ack_wait=0.6)
    await publish(bus, stream, *"aab")
    seen = Seen(lambda delivery: time.sleep(0.7))
    runs = [consumer.run(seen, concurrency=8, stop_when_empty=True) for _ in range(2)]

    summaries = await asyncio.gather(*runs)

    assert sorted(seen.attempts) == [(1, 1), (2, 1), (3, 1)]
    assert sum(summary.acked_count for summary in summaries) == 3


async def test_a_handler_that_blocks_the_event_loop_does_not_stop_heartbeats(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        consumer = await bus.create_consumer(name, "c", ack_wait=0.6)
        await publish(bus, name, "a")
        stolen: list[Delivery] = []

        async def handle(delivery: Delivery) -> None:
            with postbus.connect(url) as other:  # It blocks, as no async handler should.
                stolen.extend(other.consumer(name, "c").receive(wait=1.2))

        summary = await consumer.run(handle, stop_when_empty=True)
        assert (stolen, summary.acked_count) == ([], 1)


async def test_a_handler_that_hangs_has_failed_at_its_deadline(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, "a", "a", "b")
    release = threading.Event()

    def then(delivery: Delivery) -> None:
        if (delivery.data, delivery.attempt) == (1, 1):
            release.wait(30)

    seen = Seen(then)

    summary = await consumer.run(seen, handler_timeout=0.2, backoff=[0], stop_when_empty=True)
    release.set()

    assert [number for number in seen.numbers if number != 3] == [1, 1, 2]
    assert (summary.acked_count, summary.failed_count) == (3, 1)
    await assert_empty(consumer)


async def test_an_async_handler_is_cancelled_at_its_deadline(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        consumer = await bus.create_consumer(name, "c", max_deliver=1)
        await publish(bus, name, "a")
        cancelled = []

        async def handle(delivery: Delivery) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(delivery.data)
                raise

        await consumer.run(handle, handler_timeout=0.1, stop_when_empty=True)
        assert cancelled == [1]
        assert [dead.reason for dead in await consumer.dead_letters()] == ["the handler took longer than 0.1 s"]


async def test_an_empty_stream_is_left_at_once(consumer: Any) -> None:
    assert await consumer.run(Seen(), stop_when_empty=True) == postbus.WorkSummary()


async def test_a_waiting_worker_handles_new_messages(bus: Any, stream: str, consumer: Any) -> None:
    worker = worker_of(consumer, Seen(lambda delivery: worker.stop() if delivery.data == 3 else None))
    running = asyncio.create_task(run(worker))
    for number in range(1, 4):
        await asyncio.sleep(0.1)  # So that it waits.
        await bus.publish(stream, key="a", data=number)
    assert (await running).acked_count == 3
    await assert_empty(consumer)


async def test_a_stop_lets_run_what_runs_and_gives_back_the_rest(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, *(f"k{n}" for n in range(500)))
    # By then it has taken more than it handles at the same time.
    seen = Seen(lambda delivery: worker.stop() if len(seen.deliveries) == 50 else time.sleep(0.002))
    worker = worker_of(consumer, seen, concurrency=4)

    summary = await run(worker)

    assert 50 <= summary.acked_count == len(seen.deliveries) < 500
    assert (await consumer.stats()).in_flight == 0
    rest: list[int] = []
    while batch := await consumer.receive(1000, ack_wait=30):
        rest += [delivery.data for delivery in batch]
        assert {delivery.attempt for delivery in batch} == {1}  # They were not tried, so that does not count.
        await consumer.ack(batch)
    assert sorted(seen.numbers + rest) == list(range(1, 501))


async def test_handlers_that_outlast_the_grace_give_their_messages_back(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, "a")
    release = threading.Event()

    def handle(delivery: Delivery) -> None:
        worker.stop()
        release.wait(30)

    worker = worker_of(consumer, handle, grace=0.1)
    summary = await run(worker)
    (again,) = await consumer.receive(wait=5)
    release.set()

    assert (again.attempt, summary) == (2, postbus.WorkSummary())
    (peeked,) = await consumer.peek()
    assert peeked.state == "delivered"


async def test_cancelling_a_run_stops_it_in_order(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        consumer = await bus.create_consumer(name, "c")
        await publish(bus, name, "a")
        started, may_end = asyncio.Event(), asyncio.Event()

        async def handle(delivery: Delivery) -> None:
            started.set()
            await may_end.wait()

        task = asyncio.create_task(consumer.run(handle))
        await started.wait()
        task.cancel()
        await asyncio.sleep(0)
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await consumer.peek() == []


async def test_a_worker_ends_with_its_consumer(bus: Any, stream: str, consumer: Any) -> None:
    running = asyncio.create_task(consumer.run(Seen()))
    await asyncio.sleep(0.1)
    await consumer.drop()
    with pytest.raises(postbus.NotFound):
        await running


@pytest.mark.timeout(20)
def test_a_signal_that_another_thread_takes_stops_the_worker_too(url: str, name: str) -> None:
    with postbus.connect(url) as bus:
        bus.create_stream(name)
        consumer = bus.create_consumer(name, "c")
        bus.publish(name, data=1)

        def handle(delivery: Delivery) -> None:
            # Long enough for the main thread to sleep, which such a signal does not wake.
            time.sleep(0.2)
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

        assert consumer.run(handle).acked_count == 1

"""A worker whose handler gets a connection, and what it does when leases end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Delivery, Retry
from tests.integration.workers import assert_empty, once, publish, run, worker_of

# Nothing here depends on the version of the server.
pytestmark = pytest.mark.parametrize("server", ["pg18"], indirect=True)


@pytest.fixture
async def consumer(bus: Any, stream: str) -> Any:
    return await bus.create_consumer(stream, "c")


@pytest.fixture
def effects(sql: psycopg.Connection[Any], name: str) -> Callable[[], list[int]]:
    """Makes a table for what handlers do; called, what is in it."""
    sql.execute(f'create table "{name}" (number integer)'.encode())
    return lambda: [row[0] for row in sql.execute(f'select number from "{name}" order by 1'.encode())]


def writing(bus: Any, name: str, then: Callable[[Delivery], Any] = lambda delivery: None) -> Callable[..., Any]:
    """A handler that writes a message's number on its connection, and then does something."""
    statement = f'insert into "{name}" values (%s)'.encode()

    def write(delivery: Delivery, connection: Any) -> Any:
        connection.execute(statement, (delivery.data,))
        return then(delivery)

    async def write_async(delivery: Delivery, connection: Any) -> Any:
        await connection.execute(statement, (delivery.data,))
        return await asyncio.to_thread(then, delivery)

    return write_async if isinstance(bus, postbus.AsyncBus) else write


async def test_in_a_transaction_what_the_handler_wrote_commits_with_the_ack(
    bus: Any, stream: str, consumer: Any, effects: Any
) -> None:
    await publish(bus, stream, "a", "b", "a")
    handler = writing(bus, stream, once(Retry(delay=0)))

    summary = await consumer.run(handler, transaction=True, concurrency=2, stop_when_empty=True)

    assert effects() == [1, 2, 3]
    assert (summary.acked_count, summary.failed_count) == (3, 1)
    await assert_empty(consumer)


async def test_the_transaction_of_a_handler_that_took_too_long_is_rolled_back(
    bus: Any, stream: str, consumer: Any, effects: Any
) -> None:
    await publish(bus, stream, "a")
    release = threading.Event()

    def then(delivery: Delivery) -> None:
        if delivery.attempt == 1:
            release.wait(30)

    handler = writing(bus, stream, then)
    summary = await consumer.run(handler, transaction=True, handler_timeout=0.2, backoff=[0], stop_when_empty=True)
    release.set()

    assert effects() == [1]
    assert (summary.acked_count, summary.failed_count) == (1, 1)


async def test_a_lease_that_ends_while_the_handler_runs_rolls_its_transaction_back(
    bus: Any, stream: str, consumer: Any, effects: Any, url: str
) -> None:
    await publish(bus, stream, "a")
    stolen: list[Delivery] = []

    def then(delivery: Delivery) -> None:
        with postbus.connect(url) as other:
            thief = other.consumer(stream, "c")
            thief.extend(delivery.ack_id, ack_wait=0.001, shorten=True)
            stolen.extend(thief.receive(wait=10, ack_wait=60))
        worker.stop()

    # One slot, which is taken: with a free one the worker may receive the message again itself, before the thief does.
    worker = worker_of(consumer, writing(bus, stream, then), transaction=True, concurrency=1)
    summary = await run(worker)

    assert [(delivery.data, delivery.attempt) for delivery in stolen] == [(1, 2)]
    assert effects() == []
    assert summary == postbus.WorkSummary(lost_count=1)
    assert await consumer.ack(stolen) == 1


async def test_messages_behind_a_lost_message_are_not_begun(
    bus: Any, stream: str, consumer: Any, effects: Any, url: str
) -> None:
    await publish(bus, stream, "a", "a")
    begun: list[int] = []

    def then(delivery: Delivery) -> None:
        begun.append(delivery.data)
        if len(begun) == 1:
            with postbus.connect(url) as other:
                other.consumer(stream, "c").seek("earliest")  # Whatever is in flight is given up, and comes again.

    handler = writing(bus, stream, then)
    summary = await consumer.run(handler, transaction=True, concurrency=2, stop_when_empty=True)

    # A receive at the moment of the seek may bring 1 once more for nothing; 2 begins only when 1 is through.
    assert begun == [1] * (len(begun) - 1) + [2]
    assert effects() == [1, 2]
    assert summary.acked_count == 2
    assert summary.lost_count >= 1


async def test_a_handler_whose_lease_ends_is_cancelled_and_its_outcome_ignored(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        consumer = await bus.create_consumer(name, "c", ack_wait=0.5)
        await publish(bus, name, "a")

        async def handle(delivery: Delivery) -> None:
            await consumer.seek("latest")  # Whatever is in flight is given up.
            await asyncio.Event().wait()

        summary = await consumer.run(handle, stop_when_empty=True)
        assert summary == postbus.WorkSummary(lost_count=1)


async def test_what_the_handler_wrote_commits_with_a_deferral_that_it_returns_and_not_with_one_that_it_raises(
    bus: Any, stream: str, consumer: Any, effects: Any
) -> None:
    await publish(bus, stream, "a")
    seen: list[Any] = []

    def decide(delivery: Delivery) -> postbus.Defer | None:
        seen.append((delivery.attempt, delivery.deferrals, delivery.state))
        if not delivery.deferrals:
            raise postbus.Defer(state="raised")
        return postbus.Defer(delay=60, state="returned")

    handler = writing(bus, stream, decide)
    summary = await consumer.run(handler, transaction=True, stop_when_empty=True)

    assert seen == [(1, 0, None), (1, 1, "raised")]
    assert effects() == [1]
    assert summary == postbus.WorkSummary(deferred_count=2)
    (waiting,) = await consumer.peek()
    assert (waiting.state, waiting.deferrals, waiting.saved_state) == ("waiting", 2, "returned")


async def test_a_deferral_that_is_refused_fails_the_delivery(
    bus: Any, stream: str, consumer: Any, effects: Any
) -> None:
    await publish(bus, stream, "a")

    async def refuse_async(*arguments: Any) -> Any:
        return refuse(*arguments)

    def refuse(*_arguments: Any) -> Any:
        return postbus.Defer(state=b"x" * 70_000)

    handler = refuse_async if isinstance(bus, postbus.AsyncBus) else refuse
    for transaction in (True, False):
        summary = await consumer.run(handler, transaction=transaction, backoff=[0.5], stop_when_empty=True)
        assert summary == postbus.WorkSummary(failed_count=1)
        (waiting,) = await consumer.peek()
        assert "state has 70000 bytes" in waiting.reason
        await asyncio.sleep(0.6)
    assert (await consumer.run(writing(bus, stream), transaction=True, stop_when_empty=True)).acked_count == 1
    assert effects() == [1]

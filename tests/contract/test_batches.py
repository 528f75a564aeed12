"""A loop over a consumer's batches."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

import postbus
from postbus import Message


async def fill(bus: Any, stream: str, count: int) -> None:
    await bus.publish_many(stream, [Message(key=f"k{n}", data=n) for n in range(count)])


async def test_a_loop_gives_each_message_once_and_acks_it(bus: Any, stream: str, billing: Any) -> None:
    await fill(bus, stream, 100)

    seen = []
    async for batch in billing.batches(7, wait=0):
        assert len(batch) <= 7
        seen += [delivery.data for delivery in batch]

    assert sorted(seen) == list(range(100))
    stats = await billing.stats()
    assert (stats.lag_estimate, stats.in_flight, stats.waiting) == (0, 0, 0)


async def test_a_batch_is_acked_when_the_next_one_is_requested(bus: Any, stream: str, billing: Any) -> None:
    await fill(bus, stream, 30)

    async with aclosing(billing.batches(10, wait=0)) as batches:
        first, second = await anext(batches), await anext(batches)
        assert await billing.ack(first) == 0
        assert (await billing.stats()).in_flight == len(second)


async def test_leaving_a_loop_gives_back_the_batch_in_hand(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1)
    consumer = await bus.create_consumer(name, "c", order="none")
    await fill(bus, name, 10)

    async with aclosing(consumer.batches(4, wait=0)) as batches:
        async for batch in batches:
            if batch[0].data == 4:
                break

    left = [(d.data, d.attempt) async for batch in consumer.batches(10, wait=0) for d in batch]
    assert sorted(left) == [(n, 2) for n in range(4, 8)] + [(8, 1), (9, 1)]


async def test_some_of_a_batch_may_be_settled_otherwise(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")
    await fill(bus, stream, 40)

    nacked, terminated, again = [], [], []
    async for batch in consumer.batches(10, wait=0):
        again += [delivery.data for delivery in batch if delivery.attempt == 2]
        fresh = [delivery for delivery in batch if delivery.attempt == 1]
        if len(fresh) > 1:
            assert await consumer.nack(fresh[0]) == 1
            assert await consumer.terminate(fresh[1]) == 1
            nacked.append(fresh[0].data)
            terminated.append(fresh[1].data)
    again += [delivery.data for delivery in await consumer.receive(100)]

    # The ack of the batch did not count for them.
    assert nacked
    assert sorted(again) == sorted(nacked)
    assert {letter.data for letter in await consumer.dead_letters()} == set(terminated)


async def test_a_loop_waits_for_messages(bus: Any, stream: str, billing: Any) -> None:
    await fill(bus, stream, 1)

    async def last_data() -> Any:
        async with aclosing(billing.batches(wait=20)) as batches:
            await anext(batches)
            return (await anext(batches))[0].data

    waiting = asyncio.create_task(last_data())
    await asyncio.sleep(0.2)
    await bus.publish(stream, data="late")
    assert await waiting == "late"


async def test_a_loop_over_an_unknown_consumer_is_refused(bus: Any, stream: str) -> None:
    with pytest.raises(postbus.NotFound):
        await anext(bus.consumer(stream, "nobody").batches(wait=0))

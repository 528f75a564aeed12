"""A queue is first in, first out."""

from __future__ import annotations

import asyncio
from typing import Any

from postbus import Message


async def test_a_queue_is_first_in_first_out(bus: Any, name: str) -> None:
    await bus.create_queue(name)
    queue = bus.queue(name)
    await bus.publish_many(name, [Message(key=f"k{n}", data=n) for n in range(20)])
    for n in range(20, 30):
        await bus.publish(name, data=n)

    seen = []
    for size in (1, 1, 5, 3, 10, 10):
        batch = await queue.receive(size)
        seen += [delivery.data for delivery in batch]
        await queue.ack(batch)

    assert seen == list(range(30))


async def test_receivers_that_share_a_queue_take_its_messages_in_turn(bus: Any, name: str) -> None:
    await bus.create_queue(name)
    queue = bus.queue(name)
    await bus.publish_many(name, [Message(data=n) for n in range(200)])
    received: list[list[int]] = []

    async def receive() -> None:
        done = None
        while batch := await queue.receive(5, ack=done):
            received.append([delivery.data for delivery in batch])
            done = batch

    await asyncio.gather(*(receive() for _ in range(4)))

    # Each batch is the next five messages of the queue, whoever gets them.
    assert sorted(received) == [list(range(n, n + 5)) for n in range(0, 200, 5)]


async def test_failed_messages_come_again_in_order_before_new_ones(bus: Any, name: str) -> None:
    await bus.create_queue(name)
    queue = bus.queue(name)
    await bus.publish_many(name, [Message(data=n) for n in range(20)])
    for _ in range(3):
        await queue.receive(3, ack_wait=0.5)
    await asyncio.sleep(0.6)
    await bus.sweep(name)

    seen = [(delivery.data, delivery.attempt) for size in (2, 5, 10) for delivery in await queue.receive(size)]

    assert seen == [(n, 2) for n in range(9)] + [(n, 1) for n in range(9, 17)]


async def test_messages_nacked_in_any_order_come_again_in_order(bus: Any, name: str) -> None:
    await bus.create_queue(name)
    queue = bus.queue(name)
    await bus.publish_many(name, [Message(data=n) for n in range(6)])
    batch = await queue.receive(6)
    for delivery in reversed(batch):
        await queue.nack([delivery])
    await bus.sweep(name)

    assert [delivery.data for delivery in await queue.receive(6)] == list(range(6))

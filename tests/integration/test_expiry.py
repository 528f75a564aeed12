"""Consumers that nobody uses, and what a stream may keep at most."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message


async def test_an_unused_consumer_is_removed(bus: Any, name: str, sql: psycopg.Connection[Any]) -> None:
    await bus.create_stream(name, partitions=1)
    for consumer in ("idle", "used", "polled", "kept"):
        await bus.create_consumer(name, consumer, expire_after=None if consumer == "kept" else 60)
    await bus.publish_many(name, [Message(data=n) for n in range(3)])
    await bus.maintain(name)  # Sees them for the first time.

    def age(consumer: str) -> None:
        """As if it had been used last two minutes ago."""
        sql.execute(
            "update postbus_data.consumer_use set used_at = used_at - interval '2 minutes' where consumer_id = "
            "(select id from postbus_data.consumer where stream_name = %s and name = %s)",
            (name, consumer),
        )

    for consumer in ("idle", "used", "polled"):
        age(consumer)
    await bus.consumer(name, "used").receive(1)
    await bus.consumer(name, "polled").receive(10)
    await bus.maintain(name)
    assert {info.name for info in await bus.list_consumers(name)} == {"used", "polled", "kept"}
    with pytest.raises(postbus.InvalidInput, match="1 minute"):
        await bus.create_consumer(name, "hasty", expire_after=1)


async def test_a_queue_remembers_what_became_of_its_messages(bus: Any, name: str) -> None:
    await bus.create_queue(name, keep_history=60, max_deliver=2, partitions=1)
    queue = bus.queue(name)
    await queue.publish_many([Message(key="k", data=n) for n in range(3)])
    batch = await queue.receive(3)
    await queue.ack(batch[:1])
    await queue.nack([batch[1]], reason="too hot")
    await queue.nack([batch[2]], reason="too cold")
    again: list[Any] = []
    while len(again) < 2:
        again += await queue.receive(2, wait=5)
    again.sort(key=lambda delivery: delivery.seq)
    await queue.nack([again[1]], reason="much too cold")
    await queue.ack([again[0]])
    await bus.maintain(name)

    entries = [(e.data, e.outcome, e.attempt, e.last_error) for e in await queue.history()]
    assert entries[:2] == [(1, "acked", 2, "too hot"), (2, "dead", 2, "much too cold")]
    assert sorted(entries[2:]) == [(0, "acked", 1, None), (1, "failed", 1, "too hot"), (2, "failed", 1, "too cold")]
    assert all(e.duration.total_seconds() >= 0 and e.key == "k" for e in await queue.history())
    assert [e.data for e in await queue.history(outcome="dead")] == [2]
    assert [e.data for e in await queue.history(max_messages=1)] == [1]
    assert len(await bus.read(name)) == 3  # Kept for as long.

    await queue.alter(keep_history=1)
    await asyncio.sleep(1.1)
    await bus.maintain(name)
    assert await queue.history() == []
    await bus.maintain(name)
    assert len(await bus.read(name)) == 0


async def test_a_stream_may_keep_as_many_messages_as_there_are_numbers(bus: Any, name: str) -> None:
    await bus.create_stream(name, max_messages=2**63 - 1)
    await bus.publish(name, data=1)

    await bus.maintain(name)

    assert [message.data for message in await bus.read(name)] == [1]

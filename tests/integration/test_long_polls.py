"""A receive that waits for messages."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest


@pytest.fixture
async def consumer(bus: Any, stream: str) -> Any:
    return await bus.create_consumer(stream, "c", order="none")


async def test_a_long_poll_ends_when_a_message_comes(bus: Any, stream: str, consumer: Any) -> None:
    async def later() -> None:
        await asyncio.sleep(0.3)
        await bus.publish(stream, data="hello")

    started = time.monotonic()
    batch, _ = await asyncio.gather(consumer.receive(wait=20), later())
    assert [d.data for d in batch] == ["hello"]
    assert time.monotonic() - started < 10


async def test_a_long_poll_without_messages_ends_in_time(bus: Any, consumer: Any) -> None:
    started = time.monotonic()
    assert list(await consumer.receive(wait=0.3)) == []
    assert time.monotonic() - started >= 0.3


async def test_a_long_poll_notices_a_message_that_commits_late(
    bus: Any, stream: str, consumer: Any, connect: Any
) -> None:
    """Its number is drawn long before: a look at the sequence alone would not see the commit."""
    publisher = connect(autocommit=False)
    publisher.execute("select postbus.publish(%s, 'k', '1')", (stream,))

    async def later() -> None:
        await asyncio.sleep(0.3)
        await asyncio.to_thread(publisher.commit)

    batch, _ = await asyncio.gather(consumer.receive(wait=20), later())
    assert len(batch) == 1


async def test_many_long_polls_share_one_look(bus: Any, stream: str, consumer: Any) -> None:
    async def later() -> None:
        await asyncio.sleep(0.3)
        for number in range(8):
            await bus.publish(stream, data=number)

    *batches, _ = await asyncio.gather(*(consumer.receive(wait=20) for _ in range(8)), later())
    assert sorted(d.data for batch in batches for d in batch) == list(range(8))


async def test_a_long_poll_gets_a_message_that_was_out_of_reach_when_it_was_woken(
    bus: Any, stream: str, consumer: Any, connect: Any
) -> None:
    """Somebody holds the partition's mutex in a transaction, and later rolls back: nothing wakes the waiter for that."""
    await bus.publish(stream, key="k", data=1)
    holder = connect(autocommit=False)
    holder.execute("select * from postbus.receive(%s, 'c')", (stream,))

    async def later() -> None:
        await asyncio.sleep(0.6)
        await asyncio.to_thread(holder.rollback)

    batch, _ = await asyncio.gather(consumer.receive(wait=20), later())
    assert [d.data for d in batch] == [1]

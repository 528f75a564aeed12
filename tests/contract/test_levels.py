"""Priorities, four ways: what is more urgent comes first, and everything shows it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

import postbus
from postbus import Conflict, InvalidInput, Message

pytestmark = pytest.mark.newest_server


async def test_messages_come_by_priority_and_show_it(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish(stream, key="a", data="default")
    await bus.publish(stream, key="b", data="low", priority=1)
    await bus.publish_many(stream, [Message(key="c", data="urgent", priority=9), Message(key="d", data="default too")])
    found = []
    while batch := await billing.receive():
        found += [(each.data, each.priority) for each in batch]
    assert found[0] == ("urgent", 9)
    assert sorted(found[1:3]) == [("default", 4), ("default too", 4)]
    assert found[3] == ("low", 1)
    assert [each.priority for each in await bus.read(stream)] == [4, 1, 9, 4]
    assert sorted(each.priority for each in await billing.peek()) == [1, 4, 4, 9]
    assert (await billing.peek_at((await bus.read(stream))[2].seq)).priority == 9


async def test_a_dead_letter_shows_its_priority_and_keeps_it(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", max_deliver=1)
    await bus.publish(stream, data=1, priority=7)
    await consumer.nack(await consumer.receive())
    assert [each.priority for each in await consumer.dead_letters()] == [7]
    assert await consumer.redrive() == 1
    assert [each.priority for each in await consumer.receive(wait=5)] == [7]


async def test_a_scheduled_message_has_a_priority(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish(stream, data="urgent", priority=9, delay=0.3)
    await bus.publish_many(stream, [Message(data="low", priority=0)], delay=0.2)
    assert sorted(each.priority for each in await bus.list_scheduled(stream)) == [0, 9]
    await bus.publish(stream, data="default")
    await asyncio.sleep(0.5)
    await bus.sweep(stream)
    found = []
    while batch := await billing.receive():
        found += [each.data for each in batch]
    assert found == ["urgent", "default", "low"]


async def test_a_recurring_schedule_has_a_priority(bus: Any, stream: str) -> None:
    await bus.schedules.create(stream, "s", every=3600, data=1, priority=8)
    await bus.schedules.run_now(stream, "s")
    await bus.schedules.alter(stream, "s", priority=0)
    assert (await bus.schedules.info(stream, "s")).priority == 0
    assert [each.priority for each in await bus.schedules.list_all(stream)] == [0]
    await bus.schedules.run_now(stream, "s")
    assert [each.priority for each in await bus.read(stream)] == [8, 0]


@pytest.mark.parametrize("priority", [10, -1, "high", 4.5])
async def test_a_priority_out_of_range_is_refused_and_nothing_is_published(
    bus: Any, stream: str, priority: Any
) -> None:
    with pytest.raises(InvalidInput, match=r"priority = .* is not between 0 and 9"):
        await bus.publish(stream, data=1, priority=priority)
    with pytest.raises(InvalidInput, match=r"message 2 is not allowed: priority = .* is not between 0 and 9"):
        await bus.publish_many(stream, [Message(data=1), Message(data=2, priority=priority)])
    with pytest.raises(InvalidInput, match="priority"):
        await bus.schedules.create(stream, "s", every=60, data=1, priority=priority)
    assert not await bus.read(stream)
    assert not await bus.schedules.list_all(stream)


async def test_a_stream_read_in_order_partition_refuses_priorities(bus: Any, stream: str) -> None:
    await bus.create_consumer(stream, "c", order="partition")
    with pytest.raises(Conflict, match='consumer "c" reads the stream in order "partition"'):
        await bus.publish(stream, data=1, priority=9)
    await bus.publish(stream, data=1, priority=4)


async def test_ageing_is_a_setting(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", ageing=60)
    assert (await consumer.info()).ageing == timedelta(minutes=1)
    await consumer.alter(unset=["ageing"])
    assert (await consumer.info()).ageing is None
    with pytest.raises(InvalidInput, match="ageing"):
        await consumer.alter(ageing=0.1)


async def test_a_queue_gives_by_priority(bus: Any, name: str) -> None:
    await bus.create_queue(name)
    queue = bus.queue(name)
    for priority in (4, 0, 9):
        await queue.publish({"priority": priority}, priority=priority)
    await queue.publish_many([Message(data={"priority": 7}, priority=7)])
    found = []
    while batch := await queue.receive():
        found += [each.data["priority"] for each in batch]
        await queue.ack(batch)
    assert found == [9, 7, 4, 0]


async def test_stats_and_overviews_say_how_many_wait_at_each_priority(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish_many(stream, [Message(key=f"k{n}", data=n, priority=n % 3 * 4) for n in range(30)])
    assert (await billing.stats()).by_priority == {8: 10, 4: 10, 0: 10}
    await billing.nack(await billing.receive(4), delay=60)
    await billing.ack(await billing.receive(3))
    (overview,) = await bus.consumer_overview(stream)
    assert overview.by_priority == (await billing.stats()).by_priority
    assert sum(overview.by_priority.values()) == overview.backlog == 27
    assert overview.by_priority[4] == overview.by_priority[0] == 10
    assert list(overview.by_priority) == [8, 4, 0]


async def test_a_stream_without_priorities_says_so(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish(stream, data=1)
    assert (await billing.stats()).by_priority == {4: 1}


async def test_a_peek_says_that_a_message_waits_for_those_of_a_higher_priority(
    bus: Any, stream: str, billing: Any
) -> None:
    low = await bus.publish(stream, data="low", priority=2)
    await bus.publish(stream, data="urgent", priority=9)
    reasons = {each.data: each.reason for each in await billing.peek()}
    assert reasons == {"low": "messages of a higher priority go first", "urgent": None}
    assert (await billing.peek_at(low)).reason == "messages of a higher priority go first"
    await billing.ack(await billing.receive())
    assert (await billing.peek_at(low)).reason is None


async def test_a_worker_hands_out_by_level_and_holds_little(bus: Any, stream: str) -> None:
    """Of what it holds, the urgent starts first; and it does not hold much where there are levels."""
    consumer = await bus.create_consumer(stream, "c", order="none")
    await bus.publish_many(stream, [Message(data=0, priority=5), *(Message(data=n) for n in range(1, 400))])
    order: list[int] = []

    def handle(delivery: postbus.Delivery) -> None:
        order.append(delivery.data)
        if len(order) == 100:
            publish()

    def publish() -> None:
        with postbus.connect(bus.url) as other:
            other.publish(stream, data=1000, priority=9)

    await consumer.run(handle, concurrency=1, stop_when_empty=True)
    assert order[0] == 0
    assert len(order) == 401
    # At most what it held when the urgent one was published: one or two messages for a worker that handles one at a time.
    assert order.index(1000) <= 103

"""Messages for later, messages that expire, and messages once more."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import postbus
from postbus import Message


async def test_a_scheduled_message_is_published_when_due_and_not_before(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    due = datetime.now(UTC) + timedelta(seconds=0.6)
    await bus.publish(stream, key="k", data="later", headers={"a": "b"}, deliver_at=due)
    await bus.publish(stream, key="k", data="now")

    assert [d.data for d in await consumer.receive(10)] == ["now"]
    assert [m.data for m in await bus.read(stream)] == ["now"]
    assert [each.data for each in await bus.list_scheduled(stream)] == ["later"]


async def test_a_waiting_receiver_gets_it_at_its_time(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")
    due = datetime.now(UTC) + timedelta(seconds=0.4)
    await bus.publish(stream, data="later", headers={"a": "b"}, deliver_at=due)

    (delivery,) = await consumer.receive(10, wait=10)
    assert delivery.data == "later"
    assert delivery.headers == {"a": "b"}
    assert delivery.published_at >= due


async def test_the_schedule_can_be_listed_changed_and_cancelled(bus: Any, stream: str) -> None:
    now = datetime.now(UTC)
    first = await bus.publish(stream, key="a.1", data=1, deliver_at=now + timedelta(hours=2))
    second = await bus.publish(stream, key="b.1", data=2, delay=3600, ttl=60)
    third, fourth = await bus.publish_many(
        stream, [Message(key="a.2", data=3), Message(data=4)], deliver_at=now + timedelta(hours=3)
    )

    listed = await bus.list_scheduled(stream)
    assert [each.data for each in listed] == [2, 1, 3, 4]
    assert [each.id for each in listed] == [second, first, third, fourth]
    assert listed[0].ttl == timedelta(seconds=60)
    assert [each.data for each in await bus.list_scheduled(stream, key_pattern="a.*")] == [1, 3]
    assert [each.data for each in await bus.list_scheduled(stream, after=listed[1], max_messages=1)] == [3]

    assert await bus.cancel(stream, [first, third, 123456]) == 2
    assert await bus.cancel(stream, first) == 0
    assert await bus.reschedule(stream, fourth, now - timedelta(seconds=1)) == 1
    assert await bus.sweep(stream) == 1
    assert [m.data for m in await bus.read(stream)] == [4]
    assert [each.data for each in await bus.list_scheduled(stream)] == [2]


async def test_a_time_that_has_passed_publishes_at_once(bus: Any, stream: str) -> None:
    await bus.publish(stream, data=1, deliver_at=datetime.now(UTC) - timedelta(seconds=1))
    await bus.publish(stream, data=2, delay=0)
    assert [m.data for m in await bus.read(stream)] == [1, 2]


async def test_scheduled_messages_keep_the_order_of_their_times(bus: Any, stream: str) -> None:
    now = datetime.now(UTC)
    for n in (3, 1, 2):
        await bus.publish(stream, key="k", data=n, deliver_at=now + timedelta(seconds=0.2 + n / 100))
    await asyncio.sleep(0.5)
    await bus.sweep(stream)
    assert [m.data for m in await bus.read(stream)] == [1, 2, 3]


async def test_an_invalid_message_cannot_be_scheduled(bus: Any, stream: str) -> None:
    with pytest.raises(postbus.InvalidInput):
        await bus.publish(stream, key="a b", data=1, delay=60)
    with pytest.raises(postbus.InvalidInput, match="ttl"):
        await bus.publish(stream, data=1, ttl=-1)
    with pytest.raises(postbus.NotFound):
        await bus.publish(f"{stream}-none", data=1, delay=60)
    with pytest.raises(postbus.NotFound):
        await bus.cancel(f"{stream}-none", 1)
    assert await bus.list_scheduled(stream) == []


async def test_a_message_whose_time_is_over_is_skipped_and_counted(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await bus.publish(stream, key="k", data="short", ttl=0.1)
    await bus.publish(stream, key="k", data="long", ttl=60)
    await bus.publish_many(stream, [Message(key="k", data="batch")], ttl=0.1)
    await asyncio.sleep(0.2)

    assert [d.data for d in await consumer.receive(10)] == ["long"]
    stats = await consumer.stats()
    assert (stats.expired, stats.dead) == (2, 0)


async def test_a_message_whose_time_is_over_becomes_a_dead_letter_if_wanted(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", on_expired="bury")
    await bus.publish(stream, key="k", data="short", ttl=0.1)
    failing = await bus.create_consumer(stream, "failing", on_expired="bury")
    await failing.nack(await failing.receive(1))
    await asyncio.sleep(0.2)

    assert list(await consumer.receive(10)) == []
    assert list(await failing.receive(10)) == []
    for each in (consumer, failing):
        (letter,) = await each.dead_letters()
        assert (letter.data, letter.reason) == ("short", "its time to live was over")


@pytest.mark.parametrize("order", ["key", "none", "partition"])
async def test_a_range_is_delivered_again_while_the_rest_continues(bus: Any, stream: str, order: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    seqs = await bus.publish_many(stream, [Message(key=f"k.{n % 3}", data=n) for n in range(9)])
    while batch := await consumer.receive(100):
        await consumer.ack(batch)

    assert await consumer.replay(from_seq=seqs[2], to_seq=seqs[7], key_pattern="k.0") == 2  # 3 and 6.
    await bus.publish(stream, key="k.0", data="new")
    found = []
    while batch := await consumer.receive(100):
        found += [(d.data, d.attempt) for d in batch]
        await consumer.ack(batch)
    expected = [(3, 1), (6, 1), ("new", 1)]
    assert (sorted(found, key=str) if order == "none" else found) == (
        sorted(expected, key=str) if order == "none" else expected
    )


async def test_replay_leaves_messages_in_flight_and_undelivered_ones_alone(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")
    await bus.publish_many(stream, [Message(key="k", data=n) for n in range(6)])
    done = await consumer.receive(2)
    await consumer.ack(done)
    held = await consumer.receive(2)

    assert await consumer.replay(from_seq=1) == 2
    again = [*await consumer.receive(10), *await consumer.receive(10)]
    assert sorted(d.data for d in again) == [0, 1, 4, 5]
    assert await consumer.ack(held) == 2


@pytest.mark.parametrize("call", ["postbus_data.append_scheduled(%(id)s)", "postbus.sweep(%(name)s)"])
async def test_scheduled_messages_that_are_not_due_cost_nothing(bus: Any, stream: str, connect: Any, call: str) -> None:
    await bus.create_consumer(stream, "c")
    await bus.publish_many(stream, [Message(data=n) for n in range(2000)], delay=3600)
    connection = connect(autocommit=False)
    connection.execute("set local enable_seqscan = off; set local enable_bitmapscan = off")
    (stream_id,) = connection.execute("select id from postbus_data.stream where name = %s", (stream,)).fetchone()
    connection.execute(f"select {call}", {"id": stream_id, "name": stream})
    (looked_at,) = connection.execute(
        "select sum(pg_stat_get_xact_tuples_returned(i.indexrelid)) from pg_index as i "
        "where i.indrelid = 'postbus_data.scheduled'::regclass"
    ).fetchone()
    assert looked_at < 10

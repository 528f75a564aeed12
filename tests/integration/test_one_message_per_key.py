"""Streams that keep one message per key: consumers get the latest version only, and the state is a table of keys."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message


@pytest.fixture
async def prices(bus: Any, name: str) -> str:
    await bus.create_stream(name, partitions=2, one_message_per_key=True)
    return name


async def state(bus: Any, stream: str) -> dict[str, Any]:
    return {message.key: message.data for message in await bus.state(stream)}


async def drain(consumer: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    while batch := await consumer.receive(10):
        found += [(delivery.key, delivery.data) for delivery in batch]
        await consumer.ack(batch)
    return found


async def test_consumers_get_the_latest_version_only(bus: Any, prices: str) -> None:
    consumer = await bus.create_consumer(prices, "c")
    for n in range(30):
        await bus.publish(prices, key=f"k{n % 3}", data=n)

    assert sorted(await drain(consumer)) == [("k0", 27), ("k1", 28), ("k2", 29)]
    assert await state(bus, prices) == {"k0": 27, "k1": 28, "k2": 29}
    await bus.publish(prices, key="k1", data=100)
    assert await drain(consumer) == [("k1", 100)]


async def test_a_version_in_flight_is_finished_first(bus: Any, prices: str) -> None:
    consumer = await bus.create_consumer(prices, "c")
    await bus.publish(prices, key="k", data=1)
    in_flight = await consumer.receive(1)
    await bus.publish(prices, key="k", data=2)
    await bus.publish(prices, key="k", data=3)
    assert not await consumer.receive(1)
    await consumer.ack(in_flight)
    assert await drain(consumer) == [("k", 3)]


async def test_a_version_that_failed_is_not_tried_again_when_there_is_a_later_one(bus: Any, prices: str) -> None:
    consumer = await bus.create_consumer(prices, "c")
    await bus.publish(prices, key="k", data=1)
    await consumer.nack(await consumer.receive(1))
    again = await consumer.receive(1)
    assert (again[0].data, again[0].attempt) == (1, 2)
    await consumer.nack(again)
    await bus.publish(prices, key="k", data=2)
    assert await drain(consumer) == [("k", 2)]


async def test_unchanged_data_is_ignored_unless_process_unmodified_is_set(bus: Any, prices: str) -> None:
    consumer = await bus.create_consumer(prices, "c")
    first = await bus.publish(prices, key="k", data={"a": 1})
    assert await bus.publish(prices, key="k", data={"a": 1}) == first
    assert len(await drain(consumer)) == 1
    assert len(await drain(consumer)) == 0

    await bus.alter_stream(prices, process_unmodified=True)
    assert await bus.publish(prices, key="k", data={"a": 1}) > first
    assert await drain(consumer) == [("k", {"a": 1})]


async def test_in_a_batch_the_last_of_a_key_wins(bus: Any, prices: str) -> None:
    consumer = await bus.create_consumer(prices, "c")
    await bus.publish(prices, key="same", data=0)
    answers = await bus.publish_many(
        prices,
        [
            Message(key="a", data=1),
            Message(key="b", data=2),
            Message(key="a", data=3),
            Message(key="same", data=0),
        ],
    )

    assert answers[0] == answers[2] > answers[1]
    assert await state(bus, prices) == {"a": 3, "b": 2, "same": 0}
    assert sorted(await drain(consumer)) == [("a", 3), ("b", 2), ("same", 0)]


async def test_a_deleted_key_leaves_the_state_and_consumers_get_a_message(bus: Any, prices: str) -> None:
    consumer = await bus.create_consumer(prices, "c")
    await bus.publish(prices, key="k", data=1)
    assert await bus.delete_key(prices, "k") is not None
    assert await bus.delete_key(prices, "k") is None
    assert await bus.delete_key(prices, "never") is None
    assert await state(bus, prices) == {}

    (delivery,) = await consumer.receive(10)
    assert (delivery.key, delivery.data, delivery.headers) == ("k", None, {"postbus-deleted": "true"})
    await consumer.ack([delivery])
    await bus.publish(prices, key="k", data=1)  # The same as before it was deleted.
    assert await state(bus, prices) == {"k": 1}
    assert await drain(consumer) == [("k", 1)]


async def test_only_publishers_of_the_same_key_wait_for_each_other(bus: Any, prices: str, connect: Any) -> None:
    consumer = await bus.create_consumer(prices, "c")
    await bus.publish(prices, key="a", data=0)
    open_one = connect(autocommit=False)
    open_one.execute("select postbus.publish(%s, 'a', '1')", (prices,))
    await asyncio.wait_for(bus.publish(prices, key="b", data=2), 5)
    waiting = asyncio.create_task(bus.publish(prices, key="a", data=3))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    open_one.commit()
    await waiting
    assert await state(bus, prices) == {"a": 3, "b": 2}
    assert sorted(await drain(consumer)) == [("a", 3), ("b", 2)]


async def test_many_publishers_and_a_consumer_agree_on_the_last_version(bus: Any, prices: str) -> None:
    consumer = await bus.create_consumer(prices, "c", ack_wait=30)
    last: dict[str, Any] = {}
    done = asyncio.Event()

    async def publish(worker: int) -> None:
        for n in range(15):
            await bus.publish_many(prices, [Message(key=f"k{(n + k) % 7}", data=f"{worker}-{n}") for k in range(4)])

    async def consume() -> None:
        while True:
            was_done = done.is_set()
            batch = await consumer.receive(5)
            last.update({delivery.key: delivery.data for delivery in batch})
            await consumer.ack(batch)
            if was_done and not batch:
                return

    readers = asyncio.gather(consume(), consume())
    await asyncio.gather(*(publish(worker) for worker in range(4)))
    done.set()
    await asyncio.wait_for(readers, 60)
    assert last == await state(bus, prices)


async def test_the_state_is_read_in_pages_by_key_and_by_pattern(bus: Any, prices: str) -> None:
    await bus.publish_many(prices, [Message(key=f"k.{n:02}", data=n) for n in range(25)])
    await bus.publish(prices, key="other", data=1)
    pages, after = [], ""
    while page := await bus.state(prices, after_key=after, max_messages=10):
        pages.append(len(page))
        after = page[-1].key
    assert pages == [10, 10, 6]
    assert [m.data for m in await bus.state(prices, key="k.07")] == [7]
    assert len(await bus.state(prices, key_pattern="k.*")) == 25


async def test_a_stream_with_one_message_per_key_refuses_keyless_messages_and_order_none(bus: Any, prices: str) -> None:
    stream = f"{prices}-plain"
    await bus.create_stream(stream)
    with pytest.raises(postbus.InvalidInput, match="one message per key, and this message has no key"):
        await bus.publish(prices, data=1)
    with pytest.raises(postbus.InvalidInput, match="message 2"):
        await bus.publish_many(prices, [Message(key="a", data=1), Message(data=1)])
    with pytest.raises(postbus.InvalidInput, match="order"):
        await bus.create_consumer(prices, "c", order="none")
    with pytest.raises(postbus.Conflict, match="does not keep one message per key"):
        await bus.state(stream)
    with pytest.raises(postbus.Conflict, match="does not keep one message per key"):
        await bus.delete_key(stream, "k")


async def test_one_message_per_key_works_with_ids_segments_and_schedules(
    bus: Any, name: str, sql: psycopg.Connection[Any]
) -> None:
    await bus.create_stream(name, partitions=2, one_message_per_key=True, dedup_window=60, segment_bytes=65536)
    consumer = await bus.create_consumer(name, "c")
    pad = "x" * 2000
    for n in range(120):
        await bus.publish_many(name, [Message(key=f"k{k}", data=[n, pad], dedup_id=f"{n}-{k}") for k in range(3)])
        assert (await bus.publish(name, key="k0", data="again", dedup_id=f"{n}-0")).is_duplicate
        if n % 20 == 0:
            await bus.maintain(name)
    await bus.publish(name, key="k2", data="later", delay=0.1)
    await asyncio.sleep(0.2)
    await bus.sweep(name)
    expected = {"k0": [119, pad], "k1": [119, pad], "k2": "later"}
    assert await state(bus, name) == expected
    assert dict(await drain(consumer)) == expected
    assert (await bus.stream_info(name)).segment_count > 2

    stream_id = (await bus.stream_info(name)).id
    await bus.drop_stream(name)
    left = sql.execute(
        "select relname from pg_class where relname ~ %s", (rf"^(state|dedup|seq|layout|log)_{stream_id}(_|$)",)
    ).fetchall()
    assert left == []


async def test_replaced_versions_are_removed_and_no_consumer_misses_a_message(
    bus: Any, name: str, sql: psycopg.Connection[Any]
) -> None:
    await bus.create_stream(name, partitions=2, one_message_per_key=True, segment_bytes=65536)
    slow = await bus.create_consumer(name, "slow", ack_wait=60)
    await bus.publish(name, key="rare", data=["first", "x" * 500])
    held = await slow.receive(1)
    pad = "x" * 500
    for n in range(60):
        await bus.publish_many(name, [Message(key=f"k{k}", data=[n, pad]) for k in range(40)])
        await bus.maintain(name)
    for _ in range(30):
        await bus.maintain(name)
    stream_id = (await bus.stream_info(name)).id
    sizes = [
        sql.execute(f"select count(*) from postbus_data.log_{stream_id}_{number}").fetchone()[0]  # type: ignore[index]
        for (number,) in sql.execute(
            "select number from postbus_data.segment where stream_id = %s order by number", (stream_id,)
        ).fetchall()
    ]
    assert sum(sizes) < 1200  # Of 2,401.
    expected = {"rare": ["first", pad], **{f"k{k}": [59, pad] for k in range(40)}}
    assert await state(bus, name) == expected
    await slow.nack(held)
    assert dict(await drain(slow)) == expected
    late = await bus.create_consumer(name, "late")
    assert dict(await drain(late)) == expected
    await bus.publish(name, key="rare", data="second")
    assert await drain(late) == [("rare", "second")]


async def test_versions_stay_while_a_consumer_is_to_see_all_of_them(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=2, one_message_per_key=True, segment_bytes=65536)
    await bus.create_consumer(name, "archive", keep_unread=True)
    for n in range(30):
        await bus.publish_many(name, [Message(key=f"k{k}", data=[n, "x" * 500]) for k in range(40)])
        await bus.maintain(name)
    assert len([message async for message in bus.scan(name)]) == 1200

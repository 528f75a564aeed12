"""How much a consumer has left to do: counted up to a thousand messages that were not delivered, estimated beyond."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import postbus
from postbus import Filter, Message
from postbus.client._async.consumer import AsyncConsumer


async def counted(consumer: AsyncConsumer) -> int:
    """The backlog, which has to be exact."""
    stats = await consumer.stats()
    assert stats.backlog_is_exact
    assert stats.backlog == stats.lag_estimate + stats.in_flight + stats.waiting == stats.backlog_estimate
    return stats.backlog


def messages(count: int, keys: int = 50) -> list[Message]:
    return [Message(key=f"k.{n % keys}", data=n) for n in range(count)]


@pytest.mark.parametrize("order", ["key", "none", "partition"])
async def test_the_backlog_is_right_at_once_after_every_step(bus: Any, stream: str, sql: Any, order: Any) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order, max_deliver=2, ack_wait=0.05)
    assert await counted(consumer) == 0
    await bus.publish(stream, key="k", data=1)
    assert await counted(consumer) == 1
    await bus.publish_many(stream, messages(9))
    assert await counted(consumer) == 10

    batch = await consumer.receive(5, ack_wait=600)
    assert await counted(consumer) == 10
    await consumer.ack(batch[0])
    assert await counted(consumer) == 9
    await consumer.nack(batch[1:2], delay=60)
    assert await counted(consumer) == 9
    await consumer.terminate(batch[2:3])
    assert await counted(consumer) == 8
    assert (await consumer.stats()).dead == 1
    await consumer.ack(batch[3:])
    left = 8 - len(batch[3:])
    assert await counted(consumer) == left

    await consumer.receive(1)
    await asyncio.sleep(0.1)
    assert await counted(consumer) == left  # The lease is over, and nobody has noticed.
    await bus.sweep(stream)
    assert await counted(consumer) == left
    assert sql.execute("select postbus.backlog(%s, 'c')", (stream,)).fetchone() == (left,)
    await consumer.seek("latest")
    assert await counted(consumer) == 0
    await consumer.seek("earliest")
    assert await counted(consumer) == 10


async def test_messages_parked_behind_their_key_count(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await bus.publish_many(stream, [Message(key="one", data=n) for n in range(3)])
    first = await consumer.receive(1)
    await bus.publish(stream, key="other", data=3)
    assert [each.key for each in await consumer.receive(5)] == ["other"]
    assert await counted(consumer) == 4
    await consumer.nack(first, delay=60)
    assert await counted(consumer) == 4


async def test_only_messages_that_pass_the_filter_count(bus: Any, stream: str) -> None:
    by_key = await bus.create_consumer(stream, "k", filter="rare.>")
    by_header = await bus.create_consumer(stream, "h", filter=Filter(headers={"type": "new"}))
    by_absence = await bus.create_consumer(stream, "n", filter=Filter(headers_not={"type": "new"}))
    by_data = await bus.create_consumer(stream, "d", filter=Filter(data="$ ? (@ > 98)"))
    await bus.publish_many(stream, messages(100))
    await bus.publish(stream, key="rare.1", data=1, headers={"type": "new"})
    assert [await counted(each) for each in (by_key, by_header, by_absence)] == [1, 1, 100]
    # Such a filter can take any time, so it is not evaluated.
    stats = await by_data.stats()
    assert (stats.backlog, stats.backlog_is_exact) == (101, False)
    await by_data.ack(await by_data.receive(10))
    while await by_data.receive(10):
        pass
    assert await counted(by_data) == 0


async def test_of_each_key_only_the_current_version_counts(bus: Any, name: str) -> None:
    await bus.create_stream(name, one_message_per_key=True)
    try:
        consumer = await bus.create_consumer(name, "c")
        await bus.publish_many(name, [Message(key=f"k{n % 3}", data=n) for n in range(12)])
        assert await counted(consumer) == 3
        (first,) = await consumer.receive(1)
        await consumer.nack(first, delay=60)
        assert await counted(consumer) == 3
        await bus.publish(name, key=first.key, data=100)
        assert await counted(consumer) == 3
    finally:
        await bus.drop_stream(name)


async def test_messages_whose_time_to_live_is_over_do_not_count(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await bus.publish(stream, key="k", data=1, ttl=0.05)
    await bus.publish(stream, key="k", data=2)
    await asyncio.sleep(0.1)
    assert await counted(consumer) == 1


async def test_scheduled_messages_are_counted_apart(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await bus.publish(stream, key="k", data=1, delay=600)
    await bus.publish(stream, key="k", data=1, delay=60)
    assert await counted(consumer) == 0
    info = await bus.stream_info(stream)
    assert (info.scheduled, info.message_estimate) == (2, 0)
    assert info.next_scheduled_at is not None
    assert abs(info.next_scheduled_at - datetime.now(UTC) - timedelta(seconds=60)) < timedelta(seconds=30)
    (shown,) = [each for each in await bus.overview(sizes=True) if each.name == stream]
    assert (shown.scheduled, shown.next_scheduled_at) == (2, info.next_scheduled_at)


async def test_what_is_committed_counts_although_another_publisher_is_open(bus: Any, stream: str, connect: Any) -> None:
    consumer = await bus.create_consumer(stream, "c")
    holder = connect()
    holder.execute("begin")
    holder.execute("select postbus.publish(%s, 'k', '1')", (stream,))
    await bus.publish(stream, key="k", data=2)
    assert await counted(consumer) == 1
    holder.execute("commit")
    assert await counted(consumer) == 2


async def test_the_backlog_of_a_group_is_counted(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "g")
    group = bus.group(stream, "g")
    await bus.publish_many(stream, messages(20))
    claims = await group.claim(5, lease=60)
    assert claims
    assert (await group.stats()).backlog == 20
    await group.commit(claims)
    assert (await group.stats()).backlog == 20 - sum(each.message_count for each in claims)


async def test_after_a_change_of_the_partition_count_both_layouts_count(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await bus.publish_many(stream, messages(30))
    await bus.alter_stream(stream, partitions=2)
    await bus.publish_many(stream, messages(30))
    assert await counted(consumer) == 60
    assert (await bus.stream_info(stream)).message_estimate == 60


@pytest.mark.parametrize("keys", [1, 500], ids=["one key", "many keys"])
@pytest.mark.parametrize("segments", [1, 3])
async def test_beyond_a_thousand_it_is_an_estimate_however_keys_are_spread(
    bus: Any, name: str, keys: int, segments: int
) -> None:
    await bus.create_stream(name, partitions=8, segment_bytes=65536 if segments > 1 else 2**28)
    try:
        consumer = await bus.create_consumer(name, "c", filter=Filter(headers_not={"type": "new"}))
        for _ in range(segments):
            await bus.publish_many(name, messages(6000 // segments, keys))
            await bus.maintain(name)
            await bus.maintain(name)
        stats = await consumer.stats()
        assert not stats.backlog_is_exact
        assert 5000 <= stats.backlog <= 7000
        assert 5000 <= (await bus.stream_info(name)).message_estimate <= 7000
        await consumer.seek(from_seq=5002)
        assert await counted(consumer) == 999
    finally:
        await bus.drop_stream(name)


async def test_the_number_of_messages_is_right_at_once(bus: Any, stream: str) -> None:
    for count in range(1, 4):
        await bus.publish(stream, key=str(count), data=count)
        assert (await bus.stream_info(stream)).message_estimate == count
        (listed,) = [each for each in await bus.list_streams() if each.name == stream]
        (shown,) = [each for each in await bus.overview(sizes=True) if each.name == stream]
        assert listed.message_estimate == shown.message_estimate == count
    await bus.purge(stream, before_seq=3)
    assert (await bus.stream_info(stream)).message_estimate == 1
    await bus.publish_many(stream, messages(997))
    assert (await bus.stream_info(stream)).message_estimate == 998


async def test_a_queue_holds_a_message_until_it_is_acked(bus: Any, name: str) -> None:
    await bus.create_queue(name)
    try:
        queue = bus.queue(name)
        await queue.publish(1)
        first = await queue.receive(1)
        await bus.maintain(name)
        assert (await bus.stream_info(name)).message_estimate == 1
        await queue.nack(first, delay=0)
        await bus.maintain(name)
        assert (await bus.stream_info(name)).message_estimate == 1
        await queue.ack(await queue.receive(1, wait=5))
        await bus.maintain(name)
        assert (await bus.stream_info(name)).message_estimate == 0
    finally:
        await bus.drop_stream(name)


async def test_one_overview_has_the_consumers_of_all_streams(bus: Any, stream: str, sql: Any) -> None:
    await bus.create_stream(f"{stream}-2")
    for name in (stream, f"{stream}-2"):
        for consumer in ("b", "a"):
            await bus.create_consumer(name, consumer)
        await bus.publish(name, key="k", data=1)
    found = [each for each in await bus.consumer_overview() if each.stream.startswith(stream)]
    assert [(each.stream, each.name, each.backlog, each.backlog_is_exact) for each in found] == [
        (name, consumer, 1, True) for name in (stream, f"{stream}-2") for consumer in ("a", "b")
    ]
    pages = []
    last = ("", "")
    statement = "select stream_name, name from postbus.consumer_overview(null, %s, %s, max_consumers => 1)"
    while page := sql.execute(statement, last).fetchall():
        last = page[0]
        pages.append(last)
    assert pages == [(each.stream, each.name) for each in await bus.consumer_overview()]


@pytest.mark.parametrize("order", ["key", "none"])
def test_a_message_that_moves_meanwhile_is_counted_once(fresh_url: str, order: Any) -> None:
    """Workers take messages and give them back all the time, so their number stays the same at every moment."""
    over = threading.Event()

    def work() -> None:
        with postbus.connect(fresh_url) as own:
            mine = own.consumer("orders", "c")
            while not over.is_set():
                mine.nack(mine.receive(7), delay=0)

    with postbus.connect(fresh_url) as bus, ThreadPoolExecutor(3) as workers:
        bus.create_stream("orders", partitions=2)
        consumer = bus.create_consumer("orders", "c", order=order)
        bus.publish_many("orders", messages(200))
        running = [workers.submit(work) for _ in range(3)]
        try:
            deadline = time.monotonic() + 3
            seen = [consumer.stats().backlog]
            while time.monotonic() < deadline:
                seen.append(consumer.stats().backlog)
        finally:
            over.set()
        for each in running:
            each.result()
    assert len(seen) > 50
    assert set(seen) == {200}

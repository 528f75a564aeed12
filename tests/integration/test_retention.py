"""What a stream keeps: by age, number and size, for slow consumers, and until it is acked."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message

PAD = "x" * 1000


async def create(bus: Any, name: str, **settings: Any) -> str:
    await bus.create_stream(name, partitions=2, segment_bytes=65536, **settings)
    return name


async def fill(bus: Any, stream: str, count: int) -> None:
    """Messages of about a kilobyte, with maintenance between the batches."""
    for start in range(0, count, 50):
        await bus.publish_many(
            stream, [Message(key=f"k{n % 5}", data={"n": n, "pad": PAD}) for n in range(start, min(start + 50, count))]
        )
        await maintain(bus, stream)


async def maintain(bus: Any, stream: str) -> None:
    for _ in range(4):
        await bus.maintain(stream)


async def numbers(bus: Any, stream: str) -> list[int]:
    return [message.data["n"] async for message in bus.scan(stream)]


async def test_the_oldest_go_beyond_max_messages(bus: Any, name: str) -> None:
    stream = await create(bus, name, max_messages=100)
    await fill(bus, stream, 400)

    assert await numbers(bus, stream) == list(range(300, 400))
    info = await bus.stream_info(stream)
    assert info.segment_count < 6
    assert not info.is_full


async def test_the_oldest_go_beyond_max_storage(bus: Any, name: str) -> None:
    stream = await create(bus, name, max_storage=2 * 1024 * 1024)
    await fill(bus, stream, 3000)

    kept = await numbers(bus, stream)
    assert kept == list(range(kept[0], 3000))
    assert kept[0] > 0
    assert (await bus.stream_info(stream)).bytes < 1.1 * 2 * 1024 * 1024 + 200_000


async def test_old_messages_are_evicted_and_young_ones_stay(bus: Any, name: str) -> None:
    stream = await create(bus, name, retain_up_to=1.5)
    await fill(bus, stream, 100)
    assert len(await numbers(bus, stream)) == 100
    await asyncio.sleep(3)
    await bus.publish(stream, data={"n": 1000})
    await maintain(bus, stream)
    assert await numbers(bus, stream) == [1000]

    await bus.alter_stream(stream, max_messages=1, retain_at_least=1.0)
    await fill(bus, stream, 10)
    assert len(await numbers(bus, stream)) == 11  # They are younger than that.
    assert (await bus.stream_info(stream)).is_full
    await bus.alter_stream(stream, unset=("retain_at_least",))
    await maintain(bus, stream)
    assert await numbers(bus, stream) == [9]


async def test_a_full_stream_refuses_messages_until_there_is_room(bus: Any, name: str) -> None:
    stream = await create(bus, name, max_messages=100, when_full="refuse")
    await fill(bus, stream, 101)

    assert (await bus.stream_info(stream)).is_full
    with pytest.raises(postbus.StreamFull, match="is full"):
        await bus.publish(stream, data={"n": 1})
    with pytest.raises(postbus.StreamFull):
        await bus.publish_many(stream, [Message(data={"n": 1})])
    assert len(await numbers(bus, stream)) == 101  # Reading goes on.

    await bus.purge(stream, before_seq=90)
    await maintain(bus, stream)
    await bus.publish(stream, data={"n": 1000})


async def test_a_slow_consumer_misses_messages_and_says_so(bus: Any, name: str) -> None:
    stream = await create(bus, name, max_messages=100)
    consumer = await bus.create_consumer(stream, "slow")
    await fill(bus, stream, 50)
    await consumer.ack(await consumer.receive(1))
    await fill(bus, stream, 400)

    assert (await consumer.stats()).missed_estimate > 250
    received = []
    while batch := await consumer.receive(50):
        received += [delivery.data["n"] for delivery in batch]
        await consumer.ack(batch)
    assert sorted(received) == list(range(300, 400))
    assert (await consumer.stats()).missed_estimate > 250


async def test_numbers_that_no_message_has_are_not_missed(bus: Any, name: str, connect: Any) -> None:
    await bus.create_stream(name, partitions=4)
    consumer = await bus.create_consumer(name, "billing")
    with connect(autocommit=False) as given_up:
        for _ in range(50):
            given_up.execute("select postbus.publish(%s, 'k', '1')", (name,))
        given_up.rollback()
    await bus.publish(name, key="k", data=1)
    await bus.purge(name, everything=True)

    assert (await consumer.stats()).missed_estimate == 1
    await bus.publish(name, key="k", data=2)
    await consumer.ack(await consumer.receive(10))
    assert (await consumer.stats()).missed_estimate == 1


async def test_empty_partitions_miss_no_messages(bus: Any, name: str) -> None:
    """All have the same key. Whoever has read one partition to its end has read all there was."""
    stream = await create(bus, name, max_messages=100)
    consumer = await bus.create_consumer(stream, "billing")
    for start in range(0, 500, 50):
        await bus.publish_many(stream, [Message(key="k", data={"n": n}) for n in range(start, start + 50)])
        await consumer.ack(await consumer.receive(50))
        await maintain(bus, stream)
    assert (await consumer.stats()).missed_estimate == 0
    assert len(await numbers(bus, stream)) < 200


@pytest.mark.parametrize("is_dropped", [True, False])
async def test_missed_messages_are_counted_exactly(bus: Any, name: str, is_dropped: bool) -> None:
    stream = await create(bus, name)
    consumer = await bus.create_consumer(stream, "late")
    await fill(bus, stream, 300)
    await bus.purge(stream, everything=True)
    if is_dropped:
        await fill(bus, stream, 300)
        for _ in range(5):
            await maintain(bus, stream)
    assert (await consumer.stats()).missed_estimate == 300
    received = 0
    while batch := await consumer.receive(100):
        received += len(batch)
        await consumer.ack(batch)
    assert received == (300 if is_dropped else 0)
    assert (await consumer.stats()).missed_estimate == 300


async def test_a_consumer_may_hold_what_it_has_not_read(bus: Any, name: str) -> None:
    stream = await create(bus, name, max_messages=100)
    consumer = await bus.create_consumer(stream, "careful", keep_unread=True)
    await fill(bus, stream, 100)
    with pytest.raises(postbus.StreamFull):  # Refused rather than dropped.
        await fill(bus, stream, 300)

    received = 0
    while batch := await consumer.receive(50):
        received += len(batch)
        await consumer.ack(batch)
    assert received == (await bus.stream_info(stream)).last_seq
    await maintain(bus, stream)
    await bus.publish(stream, data={"n": 1})


async def test_a_queue_keeps_messages_until_they_are_acked(bus: Any, name: str) -> None:
    await bus.create_queue(name, ack_wait=30, partitions=2)
    queue = bus.queue(name)
    await queue.publish({"n": 1}, key="a")
    await queue.publish_many([Message(data={"n": n}) for n in range(2, 6)])

    batch = await queue.receive(10)
    rest = await queue.receive(10)
    both = sorted([*batch, *rest], key=lambda delivery: delivery.seq)
    assert [delivery.data["n"] for delivery in both] == [1, 2, 3, 4, 5]
    assert await queue.ack(both[:4]) == 4
    await maintain(bus, name)
    assert [message.data["n"] for message in await bus.read(name)] == [5]
    assert await queue.nack(both[4]) == 1
    assert [d.attempt for d in await queue.receive(1, wait=5)] == [2]


@pytest.mark.parametrize(
    ("settings", "range_"),
    [
        ({"retain_up_to": 0}, "between 1 second"),
        ({"max_messages": 0}, "at least 1"),
        ({"max_storage": 1000}, "at least 1048576"),
        ({"when_full": "panic"}, "evict, refuse"),
        ({"retain_up_to": 10, "retain_at_least": 20}, "longer than"),
    ],
)
async def test_an_impossible_bound_is_refused(bus: Any, name: str, settings: dict[str, Any], range_: str) -> None:
    with pytest.raises(postbus.InvalidInput, match=range_):
        await bus.create_stream(name, **settings)


async def test_retention_runs_beside_publishers_and_readers(bus: Any, name: str) -> None:
    stream = await create(bus, name, max_messages=200)
    consumer = await bus.create_consumer(stream, "c", order="none", keep_unread=True)
    seen: set[int] = set()

    async def publish() -> None:
        for n in range(600):
            while True:
                try:
                    await bus.publish(stream, key=f"k{n % 3}", data={"n": n, "pad": PAD})
                    break
                except postbus.StreamFull:
                    await asyncio.sleep(0.01)

    async def consume() -> None:
        while len(seen) < 600:
            batch = await consumer.receive(20, wait=1)
            seen.update(delivery.data["n"] for delivery in batch)
            await consumer.ack(batch)

    async def look_after() -> None:
        while len(seen) < 600:
            await bus.maintain(stream)

    await asyncio.wait_for(asyncio.gather(publish(), consume(), look_after()), 60)
    assert seen == set(range(600))


async def rolled(bus: Any, stream: str) -> None:
    """Let the log go on in another segment, and drop what is gone."""
    await bus.publish_many(stream, [Message(key="z", data={"n": -1, "pad": PAD}) for _ in range(70)])
    for _ in range(6):
        await bus.maintain(stream)


@pytest.mark.parametrize("order", ["none", "key", "partition"])
async def test_messages_held_by_a_consumer_outlive_their_segment(bus: Any, name: str, order: str) -> None:
    stream = await create(bus, name, max_messages=1)
    consumer = await bus.create_consumer(stream, "c", order=order)
    await bus.publish_many(stream, [Message(key=f"k{n % 2}", data={"n": n}, headers={"h": str(n)}) for n in range(6)])
    in_flight = await consumer.receive(10)
    while batch := await consumer.receive(10):
        in_flight = [*in_flight, *batch]
    first = min(in_flight, key=lambda delivery: delivery.seq)
    await consumer.nack([first], delay=1)
    await rolled(bus, stream)
    await rolled(bus, stream)
    info = await bus.stream_info(stream)
    assert info.start_seq > 6
    assert not [message for message in await bus.read(stream) if message.data["n"] >= 0]

    await consumer.nack([delivery for delivery in in_flight if delivery is not first])
    seen: dict[int, tuple[int, Any]] = {}
    async with asyncio.timeout(20):
        while len(seen) < len(in_flight):
            batch = await consumer.receive(10, wait=1)
            seen |= {d.data["n"]: (d.attempt, d.headers["h"]) for d in batch if d.data["n"] >= 0}
            await consumer.ack(batch)
    assert set(seen) == {delivery.data["n"] for delivery in in_flight}
    assert all(header == str(n) for n, (_, header) in seen.items())


async def test_copied_messages_are_deleted_when_no_consumer_holds_them(
    bus: Any, name: str, sql: psycopg.Connection[Any]
) -> None:
    stream = await create(bus, name, max_messages=1)
    consumer = await bus.create_consumer(stream, "c", order="none")
    await bus.publish_many(stream, [Message(data={"n": n}) for n in range(3)])
    held = [*await consumer.receive(10), *await consumer.receive(10)]
    await rolled(bus, stream)
    await rolled(bus, stream)
    stream_id = (await bus.stream_info(stream)).id

    def copies() -> int:
        found = sql.execute("select count(*) from postbus_data.kept where stream_id = %s", (stream_id,)).fetchone()
        return int(found[0]) if found else 0

    assert copies() == 3
    assert [peeked.data["n"] for peeked in await consumer.peek(state="delivered")] == [0, 1, 2]
    await consumer.ack(held)
    await bus.maintain(stream)
    assert copies() == 0


async def test_purged_messages_are_kept_for_no_consumer(bus: Any, name: str) -> None:
    stream = await create(bus, name)
    consumer = await bus.create_consumer(stream, "c", order="none")
    await bus.publish(stream, data={"n": 1})
    await consumer.nack(await consumer.receive(1), delay=0.5)
    await bus.purge(stream, everything=True)
    await rolled(bus, stream)
    await bus.purge(stream, everything=True)
    await rolled(bus, stream)
    assert all(delivery.data["n"] == -1 for delivery in await consumer.receive(500, wait=1))


async def test_a_dead_letter_can_be_redriven_after_its_segment_is_gone(bus: Any, name: str) -> None:
    stream = await create(bus, name, max_messages=1)
    consumer = await bus.create_consumer(stream, "c", order="none")
    await bus.publish(stream, data={"n": 1}, key="k")
    await consumer.terminate(await consumer.receive(1))
    await rolled(bus, stream)
    await rolled(bus, stream)
    assert await consumer.redrive() == 1
    found: list[Any] = []
    async with asyncio.timeout(20):
        while not found:
            batch = await consumer.receive(100, wait=5)
            found = [delivery for delivery in batch if delivery.data["n"] == 1]
            await consumer.ack(batch)
    assert [(delivery.key, delivery.attempt) for delivery in found] == [("k", 1)]


async def test_dead_letters_with_and_without_a_segment_are_redriven_together(bus: Any, name: str) -> None:
    stream = await create(bus, name, max_messages=1)
    consumer = await bus.create_consumer(stream, "c", order="none")
    for n in range(1, 9):
        await bus.publish(stream, data={"n": n}, key=f"k{n}", headers={"n": str(n)})
        await consumer.terminate(await consumer.receive(1))
        if n % 4 == 0 and n < 8:
            await rolled(bus, stream)
            await rolled(bus, stream)
    assert len(await consumer.dead_letters()) == 8
    assert await consumer.redrive() == 8
    assert await consumer.dead_letters() == []
    found: dict[int, Any] = {}
    async with asyncio.timeout(20):
        while len(found) < 8:
            batch = await consumer.receive(100, wait=5)
            found.update({delivery.data["n"]: delivery for delivery in batch if delivery.data["n"] > 0})
            await consumer.ack(batch)
    assert {n: (d.key, d.headers, d.attempt) for n, d in found.items()} == {
        n: (f"k{n}", {"n": str(n)}, 1) for n in range(1, 9)
    }


async def test_one_failing_message_does_not_keep_a_queue_on_disk(bus: Any, name: str) -> None:
    await bus.create_queue(name, partitions=2)
    await bus.alter_stream(name, segment_bytes=65536)
    queue = bus.queue(name)
    await queue.publish({"n": -5})
    await queue.nack(await queue.receive(1), delay=3)
    for _ in range(6):
        await queue.publish_many([Message(data={"n": n, "pad": PAD}) for n in range(80)])
        while batch := await queue.receive(100):
            await queue.ack(batch)
        for _ in range(3):
            await bus.maintain(name)
    assert (await bus.stream_info(name)).segment_count <= 3
    assert [d.data["n"] for d in await queue.receive(1, wait=10)] == [-5]


async def test_messages_after_expired_ones_are_found_in_an_old_segment(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1, segment_bytes=65536)
    consumer = await bus.create_consumer(name, "c")
    await bus.publish_many(name, [Message(data={"n": -2}) for _ in range(30)], ttl=0.05)
    await bus.publish_many(name, [Message(data={"n": n}) for n in range(5)])
    await rolled(bus, name)
    received: list[int] = []
    while batch := await consumer.receive(10):
        received += [delivery.data["n"] for delivery in batch if delivery.data["n"] >= 0]
        await consumer.ack(batch)
    assert received == list(range(5))

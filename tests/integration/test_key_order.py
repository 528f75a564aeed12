"""Order "key": messages of a key one after the other, whatever fails, and other keys meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from postbus import Message


async def publish(bus: Any, stream: str, *keys: str | None) -> None:
    """A message for each key; its data is its number, from 1."""
    await bus.publish_many(stream, [Message(key=key, data=n) for n, key in enumerate(keys, start=1)])


@pytest.fixture
async def one_partition(bus: Any, stream: str) -> str:
    await bus.create_stream(f"{stream}-one", partitions=1)
    return f"{stream}-one"


def numbers(batch: Any) -> list[int]:
    return [delivery.data for delivery in batch]


async def test_no_two_leases_share_a_key(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c")
    await publish(bus, one_partition, "a", "b", "a", "c", "b")

    first = await consumer.receive(2)
    second = await consumer.receive(10)
    assert numbers(first) == [1, 2]
    assert numbers(second) == [4]
    assert numbers(await consumer.receive(10)) == []

    await consumer.ack(first)
    assert numbers(await consumer.receive(10)) == [3, 5]


async def test_a_batch_may_hold_several_messages_of_a_key(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c")
    await publish(bus, one_partition, "a", "a", "a")
    assert numbers(await consumer.receive(10)) == [1, 2, 3]


async def test_max_per_key_gives_one_at_a_time(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c", max_per_key=1)
    await publish(bus, one_partition, "a", "a", "b", "a")

    first = await consumer.receive(10)
    assert numbers(first) == [1, 3]
    assert numbers(await consumer.receive(10)) == []
    await consumer.ack(first)
    second = await consumer.receive(10)
    assert numbers(second) == [2]
    await consumer.ack(second)
    assert numbers(await consumer.receive(10)) == [4]


async def test_a_key_is_free_when_its_messages_of_a_lease_are_done(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c")
    await publish(bus, one_partition, "a", "b", "a", "b")

    first = await consumer.receive(2)
    await consumer.ack(first[0])
    assert numbers(await consumer.receive(10)) == [3]


async def test_ten_keys_and_twenty_receivers_of_one_make_ten_deliveries(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await publish(bus, stream, *(f"k{n}" for n in range(10)))

    batches = await asyncio.gather(*(consumer.receive(1) for _ in range(20)))
    assert sorted(number for batch in batches for number in numbers(batch)) == list(range(1, 11))


async def test_a_message_that_failed_holds_its_key_and_lets_others_continue(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c", backoff=[0.3])
    await publish(bus, one_partition, "a", "b", "a", "c")

    first = await consumer.receive(2)
    await consumer.ack(first[1])
    await consumer.nack(first[0])
    assert numbers(await consumer.receive(10)) == [4]  # 3 is behind 1.
    again = await consumer.receive(10, wait=5)
    assert [(d.data, d.attempt) for d in again] == [(1, 2), (3, 1)]


async def test_later_messages_of_the_key_in_the_same_lease_are_redelivered_behind_the_failed_one(
    bus: Any, one_partition: str
) -> None:
    consumer = await bus.create_consumer(one_partition, "c")
    await publish(bus, one_partition, "a", "b", "a", "a")

    first = await consumer.receive(10)
    assert await consumer.nack(first[0]) == 1
    assert await consumer.ack(first[2]) == 0  # It was taken back: done before 1, it would be out of order.
    assert await consumer.ack(first[1]) == 1
    again = await consumer.receive(10)
    assert [(d.data, d.attempt) for d in again] == [(1, 2), (3, 1), (4, 1)]


async def test_messages_acked_earlier_stay_acked(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c")
    await publish(bus, one_partition, "a", "a", "a")

    first = await consumer.receive(10)
    assert await consumer.ack(first[1]) == 1
    await consumer.nack(first[0])
    assert numbers(await consumer.receive(10)) == [1, 3]


async def test_an_expired_lease_is_redelivered_in_order(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c", ack_wait=0.2)
    await publish(bus, one_partition, "a", "a", "b", "a")

    await consumer.receive(2)
    assert numbers(await consumer.receive(10, ack_wait=30)) == [3]
    again = await consumer.receive(10, wait=5, ack_wait=30)
    assert [(d.data, d.attempt) for d in again] == [(1, 2), (2, 2), (4, 1)]


async def test_part_of_a_lease_that_is_extended_does_not_overtake_the_rest(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c", ack_wait=0.2)
    await publish(bus, one_partition, "a", "a")

    first = await consumer.receive(10)
    await consumer.extend(first[1], ack_wait=30)
    again = await consumer.receive(10, wait=5, ack_wait=30)
    assert numbers(again) == [1, 2]
    assert await consumer.ack(first[1]) == 0


async def test_messages_without_a_key_never_wait_for_others(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c")
    await publish(bus, one_partition, None, None, None)

    first = await consumer.receive(1)
    assert numbers(await consumer.receive(1)) == [2]
    await consumer.nack(first[0], delay=30)
    assert numbers(await consumer.receive(10)) == [3]


async def test_reading_ahead_stops_at_max_waiting(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c", max_waiting=2)
    await publish(bus, one_partition, "a", "a", "a", "b", "a", "c")

    first = await consumer.receive(1)
    assert numbers(await consumer.receive(10)) == [4]  # 2 and 3 are parked; 5 may not be, so 6 is not reached.
    assert numbers(await consumer.receive(10)) == []
    stats = await consumer.stats()
    assert (stats.waiting, stats.in_flight) == (2, 2)
    await consumer.ack(first)
    assert numbers(await consumer.receive(10)) == [2, 3]
    assert numbers(await consumer.receive(10)) == [6]


async def test_a_dead_letter_lets_its_key_continue(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c", max_deliver=1)
    await publish(bus, one_partition, "a", "b", "a")

    first = await consumer.receive(1)
    await consumer.nack(first)
    assert numbers(await consumer.receive(10)) == [2, 3]


async def test_a_dead_letter_holds_its_key_with_on_dead_hold(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c", on_dead="hold")
    await publish(bus, one_partition, "a", "b", "a", "a")

    first = await consumer.receive(3)
    await consumer.terminate(first[0])
    await consumer.ack(first[1])
    assert numbers(await consumer.receive(10)) == []
    await consumer.redrive()
    assert numbers(await consumer.receive(10)) == [1, 3, 4]


async def test_discarding_a_dead_letter_frees_its_key(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c", on_dead="hold")
    await publish(bus, one_partition, "a", "a")

    await consumer.terminate(await consumer.receive(1))
    assert numbers(await consumer.receive(10)) == []
    await consumer.discard()
    assert numbers(await consumer.receive(10)) == [2]


@pytest.mark.parametrize("order", ["key", "none", "partition"])
async def test_giving_back_what_was_not_tried_does_not_count(bus: Any, one_partition: str, order: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c", order=order, max_deliver=1, backoff=[60])
    await publish(bus, one_partition, "a", "b")

    assert await consumer.nack(await consumer.receive(10), untried=True) == 2
    again = await consumer.receive(10)
    assert [(delivery.data, delivery.attempt) for delivery in again] == [(1, 1), (2, 1)]
    assert await consumer.nack(again) == 2
    assert len(await consumer.dead_letters()) == 2


async def test_idle_partitions_are_served_first(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await publish(bus, stream, *(f"k{n % 40}" for n in range(400)))

    partitions = (await consumer.stats()).partitions
    for _ in partitions:
        await consumer.receive(1)
    stats = await consumer.stats()
    assert stats.waiting == 0
    assert [partition.in_flight for partition in stats.partitions] == [1 for _ in partitions]


async def test_a_parked_message_is_shown_as_waiting(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c")
    await publish(bus, one_partition, "a", "a", "b")

    await consumer.receive(1)
    await consumer.receive(10)
    assert [(p.data, p.state) for p in await consumer.peek()] == [(1, "delivered"), (2, "waiting"), (3, "delivered")]


async def test_seeking_forgets_what_was_parked(bus: Any, one_partition: str) -> None:
    consumer = await bus.create_consumer(one_partition, "c")
    await publish(bus, one_partition, "a", "a", "b")

    await consumer.receive(1)
    await consumer.receive(10)
    await consumer.seek("earliest")
    assert numbers(await consumer.receive(10)) == [1, 2, 3]
    assert (await consumer.stats()).waiting == 0


async def test_key_order_continues_through_many_segments(bus: Any, stream: str) -> None:
    name = f"{stream}-rolling"
    await bus.create_stream(name, partitions=2, segment_bytes=65536)
    consumer = await bus.create_consumer(name, "c")
    for start in range(0, 1200, 200):
        await bus.publish_many(
            name, [Message(key=f"k{n % 7}", data={"n": n, "pad": "x" * 400}) for n in range(start, start + 200)]
        )
        for _ in range(3):
            await bus.maintain(name)
    assert (await bus.stream_info(name)).segment_count > 2

    seen: dict[str, list[int]] = {}
    while batch := await consumer.receive(50):
        for delivery in batch:
            seen.setdefault(delivery.key, []).append(delivery.data["n"])
        await consumer.ack(batch)
    assert sum(map(len, seen.values())) == 1200
    assert all(values == sorted(values) for values in seen.values())

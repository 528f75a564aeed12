"""Each partition has its turn, also while others have more than enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

import postbus
from postbus import Message
from tests.integration.test_delivery_locks import change, connected, receive

_PARTITIONS = 4
# A partition that is chosen at random has its turn within so many, but once in ten million times.
_TURNS = 60


def key_of(partition: int, *, other_than: str = "") -> str:
    keys = (f"k{number}" for number in range(1000))
    return next(key for key in keys if postbus.partition_of(key, _PARTITIONS) == partition and key != other_than)


async def fill(bus: Any, stream: str, key: str, count: int) -> None:
    await bus.publish_many(stream, [Message(key=key, data=n) for n in range(count)])


async def comes_in_turn(consumer: Any, is_it: Callable[[Any], bool]) -> bool:
    for _ in range(_TURNS):
        batch = await consumer.receive(1)
        await consumer.ack(batch)
        if is_it(batch[0]):
            return True
    return False


@pytest.mark.parametrize("order", ["none", "key"])
async def test_a_consumer_reads_all_partitions_from_the_beginning(bus: Any, stream: str, order: str) -> None:
    for partition in range(_PARTITIONS):
        await fill(bus, stream, key_of(partition), 100)
    consumer = await bus.create_consumer(stream, "c", order=order)

    seen = set()
    for _ in range(_TURNS):
        batch = await consumer.receive(1)
        await consumer.ack(batch)
        seen.add(batch[0].partition)
    assert seen == set(range(_PARTITIONS))


async def test_a_group_reads_all_partitions_from_the_beginning(bus: Any, stream: str) -> None:
    for partition in range(_PARTITIONS):
        await fill(bus, stream, key_of(partition), 100)
    await bus.create_group(stream, "g")

    seen = {(await bus.group(stream, "g").receive(1))[0].partition for _ in range(_TURNS)}
    assert seen == set(range(_PARTITIONS))


async def test_a_range_that_a_group_lost_comes_in_turn(bus: Any, stream: str) -> None:
    for partition in range(_PARTITIONS):
        await fill(bus, stream, key_of(partition), 200)
    await bus.create_group(stream, "g")
    group = bus.group(stream, "g")
    (lost,) = await group.claim(1, lease=0.01)
    await asyncio.sleep(0.02)

    async with aclosing(group.batches(1, ahead=1, wait=0)) as batches:
        seqs = [(await anext(batches))[0].seq for _ in range(_TURNS)]
    assert lost.from_seq in seqs


@pytest.mark.parametrize("was_read", [True, False])
async def test_a_partition_that_was_empty_has_its_turn(bus: Any, stream: str, was_read: bool) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")
    if was_read:
        await bus.publish(stream, key=key_of(1), data="before")
    await fill(bus, stream, key_of(0), 500)
    assert (await comes_in_turn(consumer, lambda d: d.data == "before")) is was_read

    await fill(bus, stream, key_of(1), 20)
    assert await comes_in_turn(consumer, lambda d: d.partition == 1)


async def test_a_partition_whose_messages_are_in_an_older_segment_has_its_turn(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=_PARTITIONS, segment_bytes=65536)
    consumer = await bus.create_consumer(name, "c", order="none")
    await bus.publish_many(name, [Message(key=key_of(1), data="x" * 900) for _ in range(200)])
    await bus.maintain(name)
    await fill(bus, name, key_of(0), 500)
    assert await comes_in_turn(consumer, lambda d: d.partition == 0)

    assert await comes_in_turn(consumer, lambda d: d.partition == 1)


async def test_in_order_key_a_failure_holds_no_other_key_of_its_partition(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="key")
    await bus.publish(stream, key=key_of(0), data="fails")
    await consumer.nack(await consumer.receive(1), delay=3600)
    await fill(bus, stream, key_of(1), 500)
    assert await comes_in_turn(consumer, lambda d: d.partition == 1)

    await fill(bus, stream, key_of(0, other_than=key_of(0)), 20)
    assert await comes_in_turn(consumer, lambda d: d.partition == 0)


async def test_in_order_key_what_was_parked_has_its_turn(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="key")
    await bus.publish_many(stream, [Message(key=key_of(0), data="first"), Message(key=key_of(0), data="parked")])
    first = await consumer.receive(1)
    assert list(await consumer.receive(1)) == []
    await fill(bus, stream, key_of(1), 500)
    assert await comes_in_turn(consumer, lambda d: d.partition == 1)

    await consumer.ack(first)
    assert await comes_in_turn(consumer, lambda d: d.data == "parked")


def test_partitions_that_never_had_a_message_are_looked_at_once(fresh_url: str) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("s", partitions=_PARTITIONS)
        consumer = bus.create_consumer("s", "c", order="none")
        bus.publish("s", key="k", data=0)
        while batch := consumer.receive(1):
            consumer.ack(batch)
        change(
            fresh_url, "postbus_data.claim_batches", "while remaining > 0 loop", "raise exception 'the long way'; loop"
        )

        for number in range(30):
            bus.publish("s", key="k", data=number)
            batch = consumer.receive(1)
            consumer.ack(batch)
            assert [delivery.data for delivery in batch] == [number]


async def test_any_number_that_is_too_large_is_refused(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")
    await bus.publish(stream, data=1)
    for number in (10_001, 2**31 - 1):
        with pytest.raises(postbus.InvalidInput, match="is not between 1 and 10000"):
            await consumer.receive(number)


@pytest.mark.parametrize("finds_something", [True, False])
def test_a_receive_waits_for_another_only_if_that_may_leave_something(fresh_url: str, finds_something: bool) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("s", partitions=_PARTITIONS)
        consumer = bus.create_consumer("s", "c", order="none")
        bus.publish_many("s", [Message(key="k", data=n) for n in range(3)])
        if not finds_something:
            consumer.ack(consumer.receive(3))
    change(fresh_url, "postbus_data.claim_batches", "perform pg_sleep(0.0005)", "raise exception 'it waits'")
    # On a busy machine, the first look at all partitions may take longer than a receive waits.
    change(fresh_url, "postbus_data.claim_batches", "interval '100 milliseconds'", "interval '1 minute'")

    # What the first has looked at is locked until its transaction ends.
    with connected(fresh_url) as first, connected(fresh_url) as second, first.transaction():
        assert receive(first) == ([1] if finds_something else [])
        if finds_something:
            with pytest.raises(Exception, match="it waits"):
                receive(second)
        else:
            assert receive(second) == []


@pytest.mark.parametrize("finds_something", [True, False])
def test_so_does_a_claim(fresh_url: str, finds_something: bool) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("s", partitions=_PARTITIONS)
        bus.create_group("s", "g")
        bus.publish_many("s", [Message(key="k", data=n) for n in range(3)])
        if not finds_something:
            bus.group("s", "g").claim(3)
    change(fresh_url, "postbus_data.claim_ranges", "perform pg_sleep(0.0005)", "raise exception 'it waits'")
    # On a busy machine, the first look at all partitions may take longer than a receive waits.
    change(fresh_url, "postbus_data.claim_ranges", "interval '100 milliseconds'", "interval '1 minute'")
    claim = "select c.message_count from postbus.claim('s', 'g', 1) as c"

    with connected(fresh_url) as first, connected(fresh_url) as second, first.transaction():
        assert first.execute(claim).fetchall() == ([(1,)] if finds_something else [])
        if finds_something:
            with pytest.raises(Exception, match="it waits"):
                second.execute(claim)
        else:
            assert second.execute(claim).fetchall() == []

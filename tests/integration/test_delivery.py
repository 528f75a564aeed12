"""Leases, acks and what happens when they fail, without key order."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import postbus
from postbus import Exponential, Message


async def publish(bus: Any, stream: str, count: int) -> None:
    await bus.publish_many(stream, [Message(key=f"k{n % 7}", data=n) for n in range(count)])


@pytest.fixture
async def consumer(bus: Any, stream: str) -> Any:
    return await bus.create_consumer(stream, "c", order="none")


async def test_a_delivery_carries_the_message_and_its_ack_id(bus: Any, stream: str, consumer: Any) -> None:
    seq = await bus.publish(stream, key="orders.1", data={"a": [1]}, headers={"h": "v"})

    (delivery,) = await consumer.receive()
    assert (delivery.key, delivery.data, delivery.headers, delivery.seq) == ("orders.1", {"a": [1]}, {"h": "v"}, seq)
    assert (delivery.attempt, delivery.partition) == (1, postbus.partition_of("orders.1", 4))
    assert delivery.ack_id
    assert delivery.published_at.tzinfo is not None


@pytest.mark.parametrize(("data_type", "data"), [("text", "hello"), ("bytes", b"\x00\xff")])
async def test_text_and_bytes_are_delivered_as_they_were(bus: Any, name: str, data_type: str, data: Any) -> None:
    await bus.create_stream(name, data_type=data_type)
    consumer = await bus.create_consumer(name, "c", order="none")
    await bus.publish(name, data=data)
    (first,) = await consumer.receive()
    await consumer.nack(first)

    (second,) = await consumer.receive()
    assert (first.data, second.data, second.attempt) == (data, data, 2)


async def test_a_message_goes_to_one_of_two_receivers(bus: Any, stream: str, consumer: Any) -> None:
    await bus.publish(stream, data=1)
    batches = await asyncio.gather(consumer.receive(), consumer.receive())
    assert sorted(len(batch) for batch in batches) == [0, 1]


async def test_a_leased_message_is_hidden_until_the_lease_ends(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", ack_wait=0.5)
    await bus.publish(stream, data=1)
    (first,) = await consumer.receive()
    assert list(await consumer.receive()) == []

    (second,) = await consumer.receive(wait=5)
    assert (first.attempt, second.attempt, second.data) == (1, 2, 1)


async def test_ack_wait_may_be_given_per_receive(bus: Any, stream: str, consumer: Any) -> None:
    await bus.publish(stream, data=1)
    await consumer.receive(ack_wait=0.2)
    assert len(await consumer.receive(wait=5)) == 1


async def test_an_acked_message_is_never_seen_again(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", ack_wait=0.1)
    await bus.publish(stream, data=1)
    assert await consumer.ack(await consumer.receive()) == 1
    assert list(await consumer.receive(wait=0.5)) == []


async def test_batches_come_in_order_within_a_partition_without_repeats(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, 25)
    batches = [await consumer.receive(10) for _ in range(4)]

    assert [len(batch) for batch in batches] == [10, 10, 5, 0]
    deliveries = [d for batch in batches for d in batch]
    assert sorted(d.data for d in deliveries) == list(range(25))
    for partition in range(4):
        seqs = [d.seq for d in deliveries if d.partition == partition]
        assert seqs == sorted(seqs)


async def test_twenty_receivers_of_one_get_ten_messages_and_ten_empty_answers(
    bus: Any, stream: str, consumer: Any
) -> None:
    await publish(bus, stream, 10)
    batches = await asyncio.gather(*(consumer.receive() for _ in range(20)))

    assert sorted(d.data for batch in batches for d in batch) == list(range(10))
    assert sum(not batch for batch in batches) == 10


async def test_an_invalid_number_of_messages_is_refused(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, 1)
    batch = await consumer.receive()
    for wrong in (None, 0, 10_001):
        with pytest.raises(postbus.InvalidInput, match="max_messages"):
            await consumer.receive(wrong, ack=batch)
    assert await consumer.ack(batch) == 1


async def test_acks_count_once_and_may_come_in_any_form(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, 12)
    batch = await consumer.receive(12)

    assert await consumer.ack(batch[0]) == 1
    assert await consumer.ack(batch[0]) == 0
    assert await consumer.ack(batch[:3]) == 2
    assert await consumer.ack([batch[3].ack_id, batch[4]]) == 2
    assert await consumer.ack(batch[5].ack_id) == 1
    assert await consumer.ack([]) == 0
    assert await consumer.ack(batch) == 6
    assert await consumer.ack(batch) == 0


async def test_ack_ids_that_were_never_issued_are_not_counted(bus: Any, stream: str, consumer: Any) -> None:
    await bus.publish(stream, data=1)
    (delivery,) = await consumer.receive()
    for wrong in ("0123456789abcdef", "0123456789abcdef-1", delivery.ack_id + "9"):
        assert await consumer.ack(wrong) == 0
        assert await consumer.nack(wrong) == 0
        assert await consumer.terminate(wrong) == 0
        assert await consumer.extend(wrong) == 0
    for wrong in ("", "x", delivery.ack_id.upper() + "x"):
        for settle in (consumer.ack, consumer.nack, consumer.terminate, consumer.extend):
            with pytest.raises(postbus.InvalidInput, match="is not an ack id"):
                await settle(wrong)
    assert await consumer.ack(delivery) == 1


async def test_another_consumers_ack_id_is_refused(bus: Any, stream: str, consumer: Any) -> None:
    other = await bus.create_consumer(stream, "other", order="none")
    await bus.publish(stream, data=1)
    batch = await consumer.receive()
    assert await other.ack(batch) == 0
    assert await consumer.ack(batch) == 1


async def test_a_late_ack_of_a_redelivered_message_changes_nothing(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", ack_wait=0.2)
    await bus.publish(stream, data=1)
    late = await consumer.receive()
    current = await consumer.receive(wait=5, ack_wait=30)
    assert current[0].attempt == 2

    assert await consumer.ack(late) == 0
    assert await consumer.nack(late) == 0
    assert await consumer.ack(current) == 1


async def test_a_nacked_message_comes_back_at_once_and_counts_its_attempts(
    bus: Any, stream: str, consumer: Any
) -> None:
    await bus.publish(stream, data=1)
    for attempt in range(1, 5):
        (delivery,) = await consumer.receive()
        assert delivery.attempt == attempt
        assert await consumer.nack(delivery) == 1
        assert await consumer.nack(delivery) == 0
        assert await consumer.ack(delivery) == 0


async def test_a_nacked_message_waits_for_its_delay(bus: Any, stream: str, consumer: Any) -> None:
    await bus.publish(stream, data=1)
    started = time.monotonic()
    await consumer.nack(await consumer.receive(), delay=0.5)
    assert list(await consumer.receive()) == []
    (delivery,) = await consumer.receive(wait=10)
    assert time.monotonic() - started >= 0.5
    assert delivery.attempt == 2


async def test_one_message_of_a_batch_may_fail_alone(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, 10)
    batch = await consumer.receive(10)
    assert await consumer.nack(batch[4], reason="bad luck") == 1
    assert await consumer.ack(batch) == 9

    (again,) = await consumer.receive(10)
    assert (again.seq, again.attempt) == (batch[4].seq, 2)


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        ([], [0, 0, 0]),
        ([1, 5], [1, 5, 5, 5]),
        (Exponential(first=2, factor=3, cap=30), [2, 6, 18, 30, 30]),
    ],
)
async def test_backoff_grows_as_it_says(bus: Any, stream: str, sql: Any, backoff: Any, delays: list[float]) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", backoff=backoff)
    consumer_id = (await consumer.info()).id
    found = sql.execute(
        "select extract(epoch from postbus_data.backoff_delay(c, n))::float from postbus_data.consumer as c, "
        "generate_series(1, %s) as n where c.id = %s order by n",
        (len(delays), consumer_id),
    ).fetchall()
    assert [row[0] for row in found] == delays


async def test_jitter_spreads_the_delays(bus: Any, stream: str, sql: Any) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", backoff=Exponential(first=10, factor=1, jitter=0.2))
    consumer_id = (await consumer.info()).id
    found = sql.execute(
        "select extract(epoch from postbus_data.backoff_delay(c, 1))::float from postbus_data.consumer as c, "
        "generate_series(1, 200) where c.id = %s",
        (consumer_id,),
    ).fetchall()
    assert all(8 <= delay <= 12 for (delay,) in found)
    assert len(set(found)) > 100


async def test_after_max_deliver_a_message_is_a_dead_letter_with_its_story(bus: Any, stream: str, sql: Any) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", max_deliver=2, ack_wait=0.1)
    await bus.publish(stream, key="orders.1", data={"a": 1}, headers={"h": "v"})
    await consumer.nack(await consumer.receive(), reason="first")
    await consumer.receive()
    assert list(await consumer.receive(wait=0.5)) == []

    row = sql.execute(
        "select d.key, d.data, d.headers, d.attempts, d.reason from postbus_data.dead_letter as d where d.consumer_id = %s",
        ((await consumer.info()).id,),
    ).fetchone()
    assert row == ("orders.1", '{"a":1}', {"h": "v"}, 2, "the lease expired")


async def test_a_terminated_message_is_a_dead_letter_at_once(bus: Any, stream: str, sql: Any) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")
    await publish(bus, stream, 3)
    batch = await consumer.receive(3)
    assert await consumer.terminate(batch[1], reason="cannot be parsed") == 1
    assert await consumer.terminate(batch[1]) == 0
    assert await consumer.ack(batch) == 2

    row = sql.execute(
        "select seq, attempts, reason from postbus_data.dead_letter where consumer_id = %s",
        ((await consumer.info()).id,),
    ).fetchone()
    assert row == (batch[1].seq, 1, "cannot be parsed")


async def test_extending_keeps_a_lease_and_never_shortens_it_unasked(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", ack_wait=0.4)
    await bus.publish(stream, data=1)
    batch = await consumer.receive()
    assert await consumer.extend(batch, ack_wait=30) == 1
    assert await consumer.extend(batch, ack_wait=0.001) == 1
    assert list(await consumer.receive(wait=0.8)) == []

    assert await consumer.extend(batch, ack_wait=0.001, shorten=True) == 1
    assert len(await consumer.receive(wait=5)) == 1


async def test_one_message_of_a_batch_may_be_extended_alone(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1)
    consumer = await bus.create_consumer(name, "c", order="none", ack_wait=0.4)
    await publish(bus, name, 5)
    batch = await consumer.receive(5)
    assert await consumer.extend(batch[2], ack_wait=30) == 1
    await asyncio.sleep(0.5)

    again = await consumer.receive(10, wait=5)
    assert sorted(d.data for d in again) == [0, 1, 3, 4]
    assert await consumer.ack(batch[2]) == 1
    assert await consumer.ack(batch) == 0


async def test_an_extended_piece_is_acked_with_its_batch(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1)
    consumer = await bus.create_consumer(name, "c", order="none")
    await publish(bus, name, 5)
    batch = await consumer.receive(5)
    await consumer.extend(batch[1:3], ack_wait=60)
    assert await consumer.ack(batch[1]) == 1
    assert await consumer.ack(batch) == 4


async def test_max_ack_pending_is_never_exceeded_by_fifty_receivers(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", max_ack_pending=7)
    await publish(bus, stream, 100)
    batches = await asyncio.gather(*(consumer.receive(3) for _ in range(50)))
    in_flight = [d for batch in batches for d in batch]
    assert len(in_flight) == 7

    assert await consumer.ack(in_flight[:3]) == 3
    assert len(await consumer.receive(10)) == 3


async def test_a_large_max_ack_pending_is_shared_by_the_partitions(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", max_ack_pending=1000)
    await publish(bus, stream, 3000)
    received = 0
    while batch := await consumer.receive(400):
        received += len(batch)
    assert 400 <= received <= 1000
    await consumer.ack(batch)


async def test_order_partition_gives_one_batch_of_a_partition_at_a_time(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="partition")
    await bus.publish_many(stream, [Message(key="same", data=n) for n in range(6)])
    first = await consumer.receive(2)
    assert [d.data for d in first] == [0, 1]
    assert list(await consumer.receive(2)) == []

    await consumer.ack(first[0])
    assert list(await consumer.receive(2)) == []
    await consumer.ack(first[1])
    assert [d.data for d in await consumer.receive(2)] == [2, 3]


async def test_in_order_partition_a_failure_holds_its_partition_and_no_other(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="partition")
    keys = {postbus.partition_of(f"k{n}", 4): f"k{n}" for n in range(50)}
    await bus.publish_many(stream, [Message(key=key, data=[p, n]) for n in range(4) for p, key in sorted(keys.items())])
    batch = await consumer.receive(100)
    failed = [d for d in batch if d.partition == 2]
    await consumer.ack([d for d in batch if d.partition != 2] + failed[:1])
    await consumer.nack(failed[1:], delay=0.5)
    await bus.publish_many(stream, [Message(key=key, data=[p, 4]) for p, key in sorted(keys.items())])

    assert {d.partition for d in await consumer.receive(100)} == {0, 1, 3}
    again = await consumer.receive(100, wait=5)
    assert [(d.data, d.attempt) for d in again] == [([2, 1], 2), ([2, 2], 2), ([2, 3], 2)]
    await consumer.ack(again)
    assert [d.data for d in await consumer.receive(100)] == [[2, 4]]


async def test_purged_messages_are_not_delivered(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, 10)
    await consumer.nack((await consumer.receive(2)), delay=0)
    await bus.purge(stream, everything=True)
    await bus.publish(stream, data="new")

    assert "new" in [d.data for d in await consumer.receive(10)]


async def test_messages_are_delivered_across_segments(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=2, segment_bytes=65536)
    consumer = await bus.create_consumer(name, "c", order="none")
    for start in range(0, 300, 100):
        await bus.publish_many(name, [Message(key=f"k{n}", data=[n, "x" * 900]) for n in range(start, start + 100)])
        await bus.maintain(name)
    found = []
    while batch := await consumer.receive(33):
        found += [d.data[0] for d in batch]
        await consumer.ack(batch)
    assert sorted(found) == list(range(300))


async def test_an_ack_may_ride_on_the_next_receive(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, 7)
    first = await consumer.receive(3)
    second = await consumer.receive(3, ack=first)
    assert (first.acked_count, second.acked_count, len(second)) == (0, 3, 3)
    assert await consumer.ack(first) == 0
    third = await consumer.receive(3, ack=second[:1])
    assert (third.acked_count, len(third)) == (1, 1)
    last = await consumer.receive(3, ack=[*second, *third])
    assert (last.acked_count, len(last)) == (3, 0)
    waited = await consumer.receive(3, ack=third, wait=0.1)
    assert (waited.acked_count, len(waited)) == (0, 0)

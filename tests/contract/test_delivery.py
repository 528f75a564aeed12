from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import postbus

pytestmark = pytest.mark.newest_server


async def test_a_received_message_is_leased_until_it_is_acked(bus: Any, stream: str, billing: Any) -> None:
    seq = await bus.publish(stream, key="a.b", data={"n": 1}, headers={"h": "1"})

    batch = await billing.receive(10)

    (delivery,) = batch
    assert (delivery.seq, delivery.key, delivery.data, delivery.headers) == (seq, "a.b", {"n": 1}, {"h": "1"})
    assert (delivery.attempt, delivery.partition) == (1, postbus.partition_of("a.b", 4))
    assert not await billing.receive(10)
    assert await billing.ack(batch) == 1
    assert await billing.ack(batch) == 0
    assert await billing.ack([]) == 0


async def test_deliveries_are_settled_as_a_batch_one_by_one_or_by_id(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish_many(stream, [postbus.Message(key=f"k.{number}", data=number) for number in range(20)])
    batch = await billing.receive(20)
    assert len(batch) == 20

    assert await billing.ack(batch[0]) == 1
    assert await billing.ack(batch[1].ack_id) == 1
    assert await billing.ack([batch[2], batch[3].ack_id, batch[0]]) == 2
    assert await billing.ack(batch) == 16
    assert (await billing.stats()).in_flight == 0


async def test_an_ack_rides_on_a_receive(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish_many(stream, [postbus.Message(key="k", data=number) for number in range(2)])
    first = await billing.receive(1)

    second = await billing.receive(1, ack=first)
    nothing = await billing.receive(1, ack=second, wait=0.05)

    assert ([each.data for each in second], second.acked_count) == ([1], 1)
    assert (len(nothing), nothing.acked_count) == (0, 1)


async def test_a_failed_message_is_redelivered_and_then_dies(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", max_deliver=2)
    await bus.publish(stream, key="k", data=1)

    first = await billing.receive()
    assert await billing.nack(first, delay=0, reason="no") == 1
    second = await billing.receive(wait=5)
    assert second[0].attempt == 2
    assert await billing.nack(second, reason="no again") == 1

    assert not await billing.receive()
    assert [each.reason for each in await billing.dead_letters()] == ["no again"]


async def test_an_untried_delivery_does_not_count(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", max_deliver=1)
    await bus.publish(stream, key="k", data=1)

    assert await billing.nack(await billing.receive(), untried=True) == 1

    assert [each.attempt for each in await billing.receive(wait=5)] == [1]


async def test_a_lease_is_extended_and_shortened(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish(stream, key="k", data=1)
    batch = await billing.receive(ack_wait=30)

    assert await billing.extend(batch, ack_wait=60) == 1
    assert await billing.extend(batch, ack_wait=0.01, shorten=True) == 1

    again = await billing.receive(wait=5)
    assert again[0].attempt == 2
    assert await billing.ack(batch) == 0


async def test_a_terminated_message_is_dead(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish(stream, key="k", data=1)

    assert await billing.terminate(await billing.receive(), reason="no use") == 1

    assert [each.reason for each in await billing.dead_letters()] == ["no use"]


async def test_a_waiting_receive_is_woken_by_a_message(bus: Any, stream: str, billing: Any) -> None:
    started = time.monotonic()
    waiting = asyncio.create_task(billing.receive(10, wait=20))
    await asyncio.sleep(0.2)

    await bus.publish(stream, key="k", data=1)

    assert [each.data for each in await waiting] == [1]
    assert time.monotonic() - started < 10


async def test_a_receive_waits_for_the_given_time(billing: Any) -> None:
    started = time.monotonic()

    assert not await billing.receive(wait=0.3)

    assert 0.3 <= time.monotonic() - started < 5


async def test_a_large_batch_is_received_in_parts_if_need_be(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish_many(stream, [postbus.Message(key=f"k.{number % 7}", data=number) for number in range(1500)])

    received: list[int] = []
    while batch := await billing.receive(10_000):
        received += [each.data for each in batch]
        assert await billing.ack(batch) == len(batch)

    assert sorted(received) == list(range(1500))


@pytest.mark.parametrize("max_deliver", [1, 2, None])
async def test_a_delivery_says_whether_it_is_the_last_attempt(bus: Any, stream: str, max_deliver: int | None) -> None:
    consumer = await bus.create_consumer(stream, "c", max_deliver=max_deliver)
    await bus.publish_many(stream, [postbus.Message(key="k", data=n) for n in range(3)])

    first = await consumer.receive(3)
    assert [(each.attempt, each.is_last_attempt) for each in first] == [(1, max_deliver == 1)] * 3
    if max_deliver != 1:
        await consumer.nack(first, delay=0)
        second = await consumer.receive(3, wait=5)
        assert [(each.attempt, each.is_last_attempt) for each in second] == [(2, max_deliver == 2)] * len(second)


async def test_the_end_of_a_message_can_be_awaited(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")
    done, dead, open_ = await bus.publish_many(stream, [postbus.Message(data=n) for n in range(3)])
    deliveries = {each.seq: each for each in await consumer.receive(3)} | {
        each.seq: each for each in await consumer.receive(3)
    }
    waiting = asyncio.gather(
        *(consumer.wait_until_done(seq, timeout=10) for seq in (done, dead)),
        consumer.wait_until_done(open_, timeout=0.4),
    )
    await asyncio.sleep(0.1)
    await consumer.ack(deliveries[done])
    await consumer.terminate(deliveries[dead])

    assert await waiting == ["done", "dead", "timeout"]
    assert await consumer.wait_until_done(done, timeout=0) == "done"


@pytest.mark.parametrize("wait", ["5s", object()])
async def test_a_wait_that_is_no_duration_is_refused_also_if_there_are_messages(
    bus: Any, stream: str, billing: Any, wait: Any
) -> None:
    await bus.publish(stream, key="k", data=1)

    with pytest.raises(postbus.InvalidInput, match="is not a duration"):
        await billing.receive(wait=wait)
    with pytest.raises(postbus.InvalidInput, match="is not a duration"):
        await (await bus.create_group(stream, "g")).claim(wait=wait)
    assert len(await billing.receive()) == 1


@pytest.mark.parametrize("verb", ["ack", "nack", "extend", "terminate"])
async def test_what_is_no_ack_id_is_refused(bus: Any, stream: str, billing: Any, verb: str) -> None:
    for ids in ("nonsense", ["nonsense"], ["0123456789abcdef-1", "nonsense"]):
        with pytest.raises(postbus.InvalidInput, match="ack"):
            await getattr(billing, verb)(ids)
    assert await getattr(billing, verb)("0123456789abcdef-1") == 0

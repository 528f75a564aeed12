"""Filters: by key, headers and content, in every order of delivery."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import postbus
from postbus import Filter, Message


async def received(consumer: Any) -> list[Any]:
    found = []
    while batch := await consumer.receive(10):
        found += [delivery.data for delivery in batch]
        await consumer.ack(batch)
    return found


@pytest.mark.parametrize("order", ["key", "none", "partition"])
async def test_only_keys_that_match_are_delivered(bus: Any, stream: str, order: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order, filter="orders.*.paid")
    keys = ["orders.a.paid", "orders.a.sent", "orders.b.paid", "users.a", None, "orders.a.b.paid"]
    await bus.publish_many(stream, [Message(key=key, data=key) for key in keys])

    assert sorted(await received(consumer)) == ["orders.a.paid", "orders.b.paid"]
    assert (await consumer.info()).filter_key_pattern == "orders.*.paid"


async def test_headers_must_be_equal_or_must_not(bus: Any, stream: str) -> None:
    paid = await bus.create_consumer(stream, "paid", filter=Filter(headers={"type": "paid", "tier": "gold"}))
    others = await bus.create_consumer(stream, "others", filter=Filter(headers_not={"type": "paid", "tier": "tin"}))
    headers = [
        {"type": "paid", "tier": "gold"},
        {"type": "paid"},
        {"type": "sent", "tier": "tin"},
        {"type": "sent"},
        None,
    ]
    await bus.publish_many(stream, [Message(data=n, headers=each) for n, each in enumerate(headers)])

    assert await received(paid) == [0]
    assert sorted(await received(others)) == [3, 4]  # Without the header counts as not equal.
    assert (await others.info()).filter_headers_not == {"type": "paid", "tier": "tin"}


@pytest.mark.parametrize("path", ["$.amount > 100", "$ ? (@.amount > 100)", "$.amount ? (@ > 100)"])
async def test_content_must_match_a_json_path(bus: Any, stream: str, path: str) -> None:
    consumer = await bus.create_consumer(stream, "c", filter=Filter(data=path))
    values = [{"amount": 50}, {"amount": 150}, {"amount": "many"}, [1], "text", None, {"amount": 101}]
    await bus.publish_many(stream, [Message(data=value) for value in values])

    assert sorted(data["amount"] for data in await received(consumer)) == [101, 150]


async def test_a_rare_message_is_found_and_what_was_scanned_is_not_scanned_again(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", filter="rare.>")
    for _ in range(3):
        await bus.publish_many(stream, [Message(key=f"common.{n % 50}", data=n) for n in range(3000)])
    await bus.publish(stream, key="rare.one", data="found")

    assert await received(consumer) == ["found"]
    stats = await consumer.stats()
    assert stats.lag_estimate == 0
    assert stats.in_flight == 0


async def test_a_changed_filter_holds_for_what_was_not_delivered(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", filter="a.>")
    await bus.publish_many(stream, [Message(key="a.1", data=1), Message(key="a.2", data=2), Message(key="b.1", data=3)])
    first = await consumer.receive(1)
    assert [d.data for d in first] in ([1], [2])

    await consumer.alter(filter="b.>")
    await bus.publish_many(stream, [Message(key="a.3", data=4), Message(key="b.2", data=5)])
    assert set(await received(consumer)) <= {3, 5}
    assert await consumer.ack(first) == 1  # What was delivered stays delivered.

    await consumer.alter(unset=("filter_key_pattern",))
    await bus.publish(stream, key="c.1", data=6)
    assert await received(consumer) == [6]


async def test_a_waiting_receiver_gets_the_one_that_passes(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", filter="yes")
    await bus.publish_many(stream, [Message(key="no", data=n) for n in range(20)])
    await bus.publish(stream, key="yes", data="it", delay=0.2)
    assert [d.data for d in await consumer.receive(5, wait=10)] == ["it"]


async def test_a_content_filter_needs_a_json_stream(bus: Any, stream: str) -> None:
    await bus.create_stream(f"{stream}-text", data_type="text")
    with pytest.raises(postbus.InvalidInput, match="json"):
        await bus.create_consumer(f"{stream}-text", "c", filter=Filter(data="$.a"))


@pytest.mark.parametrize("data", ['{"n": 1, "s": "\\u0000"}', '{"n": 1, "s": "\\ud800"}', '{"n": 1e999999}'])
async def test_unsearchable_data_passes_no_filter_and_blocks_no_other_message(
    bus: Any, stream: str, sql: psycopg.Connection[Any], data: str
) -> None:
    consumer = await bus.create_consumer(stream, "c", filter=Filter(data="$.n > 0"))
    everything = await bus.create_consumer(stream, "everything")
    sql.execute("select postbus.publish(%s, 'k', %s)", (stream, data))
    await bus.publish(stream, key="k", data={"n": 2})

    assert [delivery.data for delivery in await consumer.receive(10)] == [{"n": 2}]
    assert [each.data for each in await consumer.peek(state="available")] == []
    assert len(await everything.receive(10)) == 2

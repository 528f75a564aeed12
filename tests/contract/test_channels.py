"""Channels, four ways: limits are set and removed while consumers run, and everything says why a message waits."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from postbus import ChannelLimits, Conflict, InvalidInput, Message, NotFound

pytestmark = pytest.mark.newest_server


@pytest.fixture
async def tenants(bus: Any, name: str) -> str:
    await bus.create_stream(name, partitions=1, channel_tokens=1)
    return name


async def test_limits_are_set_listed_and_removed(bus: Any, tenants: str) -> None:
    assert await bus.channels.list_all(tenants) == []
    await bus.channels.set(tenants, "*", max_concurrency=5, weight=2)
    await bus.channels.set(tenants, "acme", max_rate=10, per=60, burst=3, paused=True)
    assert await bus.channels.list_all(tenants) == [
        ChannelLimits(
            pattern="*",
            max_concurrency=5,
            max_rate=None,
            per=timedelta(seconds=1),
            burst=1,
            weight=2,
            paused=False,
        ),
        ChannelLimits(
            pattern="acme",
            max_concurrency=None,
            max_rate=10,
            per=timedelta(minutes=1),
            burst=3,
            weight=1,
            paused=True,
        ),
    ]
    assert await bus.channels.resume(tenants, "acme")
    assert not await bus.channels.resume(tenants, "acme")
    assert await bus.channels.remove(tenants, "acme")
    assert not await bus.channels.remove(tenants, "acme")
    assert [each.pattern for each in await bus.channels.list_all(tenants)] == ["*"]


async def test_what_channels_cannot_do_is_refused(bus: Any, tenants: str) -> None:
    stream = f"{tenants}-plain"
    await bus.create_stream(stream)
    with pytest.raises(Conflict, match="no channels"):
        await bus.channels.set(stream, "*", max_concurrency=1)
    with pytest.raises(Conflict, match="no channels"):
        await bus.create_consumer(stream, "c", order="none", fair=True)
    with pytest.raises(Conflict, match='order "key"'):
        await bus.create_consumer(tenants, "c", fair=True)
    with pytest.raises(InvalidInput, match="max_concurrency"):
        await bus.channels.set(tenants, "*", max_concurrency=0)
    with pytest.raises(InvalidInput):
        await bus.channels.set(tenants, "a*", max_concurrency=1)
    with pytest.raises(InvalidInput, match="no key"):
        await bus.publish(tenants, data=1)
    with pytest.raises(InvalidInput, match="no priorities"):
        await bus.publish(tenants, key="a", data=1, priority=9)
    with pytest.raises(Conflict, match="number of partitions"):
        await bus.alter_stream(tenants, partitions=2)
    with pytest.raises(NotFound):
        await bus.channels.list_all("nowhere")
    await bus.create_consumer(tenants, "by_key")
    with pytest.raises(Conflict, match='order "key"'):
        await bus.channels.set(tenants, "*", max_concurrency=1)
    assert await bus.channels.states(tenants, "by_key") == []


async def test_states_say_why_messages_wait(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none", fair=True)
    await bus.channels.set(tenants, "full", max_concurrency=2)
    await bus.channels.set(tenants, "slow", max_rate=1, per=3600)
    await bus.channels.set(tenants, "paused", paused=True)
    for tenant in ("full", "slow", "paused"):
        await bus.publish_many(tenants, [Message(key=f"{tenant}.{n}", data=n) for n in range(5)])
    assert len(await consumer.receive(10)) == 3
    states = {each.channel: each for each in await bus.channels.states(tenants, "c")}
    assert {name: each.limited_by for name, each in states.items()} == {
        "full": "concurrency",
        "slow": "rate",
        "paused": "paused",
    }
    assert [(states[name].waiting, states[name].in_flight) for name in states] == [(3, 2), (4, 1), (5, 0)]
    assert states["slow"].next_at is not None
    assert states["full"].next_at is None
    assert {each.pattern for each in states.values()} == {"full", "slow", "paused"}
    reasons = {each.key: (each.state, each.reason) for each in await consumer.peek(max_messages=100)}
    assert reasons["full.4"] == ("available", "its channel has as many messages in flight as it may")
    assert reasons["slow.4"] == ("available", "its channel has used up its rate")
    assert reasons["paused.0"] == ("available", "its channel is paused")
    assert len(reasons) == 15
    (held,) = [each for each in await bus.read(tenants) if each.key == "paused.0"]
    assert (await consumer.peek_at(held.seq)).reason == "its channel is paused"
    stats = await consumer.stats()
    assert (stats.backlog, stats.backlog_is_exact, stats.in_flight) == (15, True, 3)
    info = await consumer.info()
    assert info.fair
    assert (await bus.stream_info(tenants)).channel_tokens == 1


async def test_a_long_poll_wakes_when_the_rate_lets_a_channel_go_on(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none")
    await bus.channels.set(tenants, "*", max_rate=2, per=1)
    await bus.publish_many(tenants, [Message(key="a.1", data=1), Message(key="a.2", data=2)])
    began = time.monotonic()
    await consumer.ack(await consumer.receive(10, wait=5))
    assert [each.data for each in await consumer.receive(10, wait=5)] == [2]
    assert 0.4 <= time.monotonic() - began < 2


async def test_a_long_poll_wakes_when_a_slot_is_free_and_when_a_channel_is_resumed(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none")
    await bus.channels.set(tenants, "*", max_concurrency=1)
    await bus.publish_many(tenants, [Message(key=f"a.{n}", data=n) for n in range(3)])
    held = await consumer.receive()
    waiting = asyncio.create_task(consumer.receive(wait=10))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    await consumer.ack(held)
    held = await asyncio.wait_for(waiting, 3)
    assert [each.data for each in held] == [1]
    await bus.channels.pause(tenants, "a")
    await consumer.ack(held)
    assert not await consumer.receive(wait=0.2)
    waiting = asyncio.create_task(consumer.receive(wait=10))
    await asyncio.sleep(0.2)
    await bus.channels.resume(tenants, "a")
    assert [each.data for each in await asyncio.wait_for(waiting, 3)] == [2]

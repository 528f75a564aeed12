"""A consumer with dead_letters_to publishes a copy of each of its dead letters to another stream."""

from __future__ import annotations

from typing import Any

import pytest

import postbus
from postbus import Message

pytestmark = pytest.mark.newest_server


@pytest.fixture
async def target(bus: Any, stream: str) -> str:
    name = f"{stream}-dead"
    await bus.create_stream(name, max_message_bytes=100)
    return name


async def messages_of(bus: Any, stream: str) -> list[Message]:
    return [message async for message in bus.scan(stream)]


async def test_each_death_is_published_with_its_reason(bus: Any, stream: str, target: str) -> None:
    billing = await bus.create_consumer(stream, "billing", max_deliver=1, dead_letters_to=target)
    assert (await billing.info()).dead_letters_to == target
    await bus.publish_many(stream, [Message(key=f"k.{n}", data={"n": n}, headers={"a": "1"}) for n in range(3)])
    batch = sorted(await billing.receive(3), key=lambda delivery: delivery.data["n"])

    await billing.terminate(batch[0], reason="not an order")
    await billing.nack(batch[1], reason="no such customer")
    await billing.ack(batch[2])

    copies = sorted(await messages_of(bus, target), key=lambda message: message.data["n"])
    assert [(copy.key, copy.data) for copy in copies] == [("k.0", {"n": 0}), ("k.1", {"n": 1})]
    assert copies[1].headers == {
        "a": "1",
        "postbus-dead-stream": stream,
        "postbus-dead-consumer": "billing",
        "postbus-dead-seq": str(batch[1].seq),
        "postbus-dead-attempts": "1",
        "postbus-dead-reason": "no such customer",
    }
    assert len(await billing.dead_letters()) == 2

    assert await billing.redrive() == 2
    await billing.terminate(await billing.receive(2), reason="again")
    assert len(await messages_of(bus, target)) == 4


async def test_it_is_changed_and_unset(bus: Any, stream: str, target: str) -> None:
    billing = await bus.create_consumer(stream, "billing")
    await billing.alter(dead_letters_to=target)
    assert (await billing.info()).dead_letters_to == target
    await billing.alter(unset=("dead_letters_to",))
    await bus.publish(stream, data=1)
    await billing.terminate(await billing.receive(1))

    assert (await billing.info()).dead_letters_to is None
    assert await messages_of(bus, target) == []


async def test_streams_that_cannot_take_copies_are_refused(bus: Any, stream: str) -> None:
    await bus.create_stream(f"{stream}-text", data_type="text")
    await bus.create_stream(f"{stream}-latest", one_message_per_key=True)
    for name in ("unknown", stream, f"{stream}-text", f"{stream}-latest"):
        with pytest.raises(postbus.InvalidInput, match="dead_letters_to"):
            await bus.create_consumer(stream, "billing", dead_letters_to=name)


async def test_a_copy_that_is_refused_keeps_the_dead_letter(bus: Any, stream: str, target: str) -> None:
    billing = await bus.create_consumer(stream, "billing", dead_letters_to=target)
    await bus.publish(stream, data="x" * 200)
    await billing.terminate(await billing.receive(1), reason="bad")
    await bus.drop_stream(target)
    await bus.publish(stream, data="y")
    await billing.terminate(await billing.receive(1), reason="bad")

    large, gone = await billing.dead_letters()
    assert large.reason.startswith(f'bad; no copy in stream "{target}": ')
    assert gone.reason == f'bad; no copy in stream "{target}": stream "{target}" does not exist'

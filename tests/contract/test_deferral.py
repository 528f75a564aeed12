"""Deferral, four ways: a message comes back at its time, with the state that was saved with it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import postbus
from postbus import InvalidInput, TooLarge

pytestmark = pytest.mark.newest_server


async def test_a_deferred_message_comes_back_with_its_state_and_no_attempt_more(
    bus: Any, stream: str, billing: Any
) -> None:
    seq = await bus.publish(stream, key="a", data={"order": 1}, headers={"source": "shop"})
    (first,) = await billing.receive()
    assert (first.deferrals, first.state) == (0, None)
    assert await billing.defer(first, state={"page": 7}) == 1

    (again,) = await billing.receive(wait=5)
    assert (again.seq, again.key, again.data, again.headers) == (seq, "a", {"order": 1}, {"source": "shop"})
    assert (again.attempt, again.deferrals, again.state) == (1, 1, {"page": 7})
    assert await billing.ack(again) == 1
    assert await billing.peek_at(seq) is None


async def test_a_deferred_message_waits_for_its_delay_or_time(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish_many(stream, [postbus.Message(data="first"), postbus.Message(data="second")])
    first, second = await billing.receive(2)
    began = datetime.now(UTC)
    await billing.defer(first, delay=0.5, state="a")
    await billing.defer(second, until=began + timedelta(seconds=1), state="b")
    assert not await billing.receive()
    assert [each.state for each in await billing.peek()] == ["waiting", "waiting"]
    seen: list[Any] = []
    while len(seen) < 2:
        seen += [(each.state, datetime.now(UTC) - began) for each in await billing.receive(2, wait=5)]
    assert [state for state, _ in seen] == ["a", "b"]
    assert [timedelta(seconds=0.4) <= seen[0][1], timedelta(seconds=0.9) <= seen[1][1]] == [True, True]


@pytest.mark.parametrize("state", [b"\x00\xff", b"", "text", 0, False, [], {"a": [None, 1.5, "ü\x00"]}, ""])
async def test_a_state_is_any_json_value_or_bytes(bus: Any, stream: str, billing: Any, state: Any) -> None:
    seq = await bus.publish(stream, data=1)
    await billing.defer(await billing.receive(), state=state)
    found = await billing.peek_at(seq)
    assert (found.saved_state, type(found.saved_state), found.deferrals) == (state, type(state), 1)
    (again,) = await billing.receive(wait=5)
    assert (again.state, type(again.state)) == (state, type(state))


async def test_a_state_that_is_left_out_is_kept_and_none_removes_it(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish(stream, data=1)
    seen = []
    for change in ({"state": 1}, {}, {"state": b"2"}, {}, {"state": None}, {}):
        (delivery,) = await billing.receive(wait=5)
        seen.append((delivery.attempt, delivery.deferrals, delivery.state))
        await billing.defer(delivery, **change)
    assert seen == [(1, 0, None), (1, 1, 1), (1, 2, 1), (1, 3, b"2"), (1, 4, b"2"), (1, 5, None)]


async def test_a_state_survives_a_failure_an_expiry_a_dead_letter_and_a_redrive(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", max_deliver=3)
    seq = await bus.publish(stream, data=1)
    await billing.defer(await billing.receive(), state={"done": 10})
    (delivery,) = await billing.receive(wait=5)
    await billing.nack(delivery, delay=0)
    (delivery,) = await billing.receive(wait=5, ack_wait=0.1)
    assert (delivery.attempt, delivery.state) == (2, {"done": 10})
    (delivery,) = await billing.receive(wait=5)
    assert (delivery.attempt, delivery.state) == (3, {"done": 10})
    await billing.nack(delivery)

    (letter,) = await billing.dead_letters()
    assert (letter.deferrals, letter.saved_state) == (1, {"done": 10})
    assert (await billing.peek_at(seq)).saved_state == {"done": 10}
    await billing.redrive(seqs=[seq])
    (delivery,) = await billing.receive(wait=5)
    assert (delivery.attempt, delivery.deferrals, delivery.state) == (1, 1, {"done": 10})


async def test_a_deferral_does_not_count_once_the_delivery_has_ended(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish(stream, data=1)
    batch = await billing.receive()
    assert [await billing.defer(batch, state=1), await billing.defer(batch, state=2), await billing.ack(batch)] == [
        1,
        0,
        0,
    ]
    (again,) = await billing.receive(wait=5)
    assert (again.deferrals, again.state) == (1, 1)
    assert await billing.ack(again) == 1
    assert await billing.defer(again, state=3) == 0
    assert not await billing.receive()


async def test_a_batch_is_deferred_whole_or_in_part(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish_many(stream, [postbus.Message(data=number) for number in range(4)])
    batch = await billing.receive(4)
    assert await billing.defer(batch[1:3], state="later") == 2
    assert await billing.ack(batch) == 2
    later = await billing.receive(4, wait=5)
    assert {(each.seq, each.state) for each in later} == {(each.seq, "later") for each in batch[1:3]}
    assert await billing.defer(later) == 2
    last = await billing.receive(4, wait=5)
    assert await billing.ack(last) == 2


async def test_a_deferred_message_holds_its_key(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", order="key")
    await bus.publish_many(stream, [postbus.Message(data=number, key=key) for number, key in enumerate("aab")])
    batch = await billing.receive(3, wait=5)
    while len(batch) < 3:
        batch = [*batch, *await billing.receive(3, wait=1)]
    first = next(each for each in batch if each.data == 0)
    await billing.defer(first, delay=0.5, state="page 2")
    await billing.ack([each for each in batch if each.data == 2])
    assert not await billing.receive(3)
    again = await billing.receive(3, wait=5)
    assert [(each.data, each.state) for each in again] == [(0, "page 2"), (1, None)]


async def test_what_cannot_be_deferred_is_refused_by_name(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish(stream, data=1)
    batch = await billing.receive()
    with pytest.raises(TooLarge, match="state has 65537 bytes, more than 65536"):
        await billing.defer(batch, state=b"x" * 65537)
    with pytest.raises(InvalidInput, match="state is not JSON"):
        await billing.defer(batch, state={"a": float("nan")})
    with pytest.raises(InvalidInput, match="until"):
        await billing.defer(batch, delay=1, until=datetime.now(UTC))
    with pytest.raises(InvalidInput, match="delay"):
        await billing.defer(batch, delay=-1)
    with pytest.raises(InvalidInput, match="delay"):
        await billing.defer(batch, delay=timedelta(days=366))
    assert await billing.defer(batch, state=b"x" * 65536, until=datetime.now(UTC) - timedelta(days=1)) == 1
    (again,) = await billing.receive(wait=5)
    assert again.state == b"x" * 65536


async def test_a_worker_defers_what_its_handler_returns_or_raises(bus: Any, stream: str, billing: Any) -> None:
    await bus.publish(stream, data="pages")
    seen: list[Any] = []

    def handle(delivery: postbus.Delivery) -> Any:
        seen.append((delivery.attempt, delivery.deferrals, delivery.state))
        done = delivery.state or 0
        if done == 0:
            return postbus.Defer(delay=0, state=1)
        if done == 1:
            raise postbus.Defer(delay=timedelta(0), state=2)
        return "done"

    async def handle_async(delivery: postbus.Delivery) -> Any:
        await asyncio.sleep(0)
        return handle(delivery)

    handler = handle_async if isinstance(billing, postbus.AsyncConsumer) else handle
    summary = await billing.run(handler, stop_when_empty=True, install_signal_handlers=False)
    assert seen == [(1, 0, None), (1, 1, 1), (1, 2, 2)]
    assert summary == postbus.WorkSummary(acked_count=1, deferred_count=2)

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import postbus

pytestmark = pytest.mark.newest_server


async def test_a_consumer_keeps_the_settings_it_was_given(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(
        stream,
        "billing",
        order="partition",
        ack_wait=1.5,
        max_ack_pending=50,
        max_deliver=3,
        backoff=postbus.Exponential(first=1, factor=3, cap=60, jitter=0.5),
        retain_dead=timedelta(days=1),
        max_waiting=10,
        filter=postbus.Filter(key="orders.>", headers={"a": "1"}, headers_not={"b": "2"}, data="$.n > 1"),
        on_expired="bury",
        keep_unread=True,
    )

    info = await billing.info()

    assert (info.stream, info.name, info.order, info.paused) == (stream, "billing", "partition", False)
    assert (info.ack_wait, info.max_ack_pending, info.max_deliver) == (timedelta(seconds=1.5), 50, 3)
    assert (list(info.backoff), info.backoff_factor) == ([timedelta(seconds=1)], 3)
    assert (info.backoff_cap, info.backoff_jitter) == (timedelta(minutes=1), 0.5)
    assert (info.retain_dead, info.max_waiting) == (timedelta(days=1), 10)
    assert (info.filter_key_pattern, info.filter_headers) == ("orders.>", {"a": "1"})
    assert info.filter_headers_not == {"b": "2"}
    assert info.filter_data is not None
    assert (info.on_expired, info.keep_unread) == ("bury", True)
    assert await bus.list_consumers(stream) == [info]


async def test_settings_are_changed_and_unset(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(
        stream, "billing", max_deliver=3, backoff=postbus.Exponential(first=1), filter="orders.>"
    )

    await billing.alter(ack_wait=7, max_ack_pending=5, on_dead="hold", unset=("max_deliver", "backoff"))
    await billing.alter(filter="invoices.*")

    info = await billing.info()
    assert (info.ack_wait, info.max_ack_pending, info.on_dead) == (timedelta(seconds=7), 5, "hold")
    assert (info.max_deliver, list(info.backoff), info.backoff_factor) == (None, [], None)
    assert info.filter_key_pattern == "invoices.*"
    await billing.alter(backoff=[1, 2.5], unset=("filter_key_pattern",))
    info = await billing.info()
    assert list(info.backoff) == [timedelta(seconds=1), timedelta(seconds=2.5)]
    assert info.filter_key_pattern is None
    with pytest.raises(postbus.InvalidInput, match="cannot be unset"):
        await billing.alter(unset=("order",))


async def test_a_filter_is_unset_by_the_name_by_which_it_is_set(bus: Any, stream: str) -> None:
    wanted = postbus.Filter(key="orders.>", headers={"a": "1"}, data="$.amount > 5")
    large = await bus.create_consumer(stream, "large", max_deliver=3, filter=wanted)

    await large.alter(unset=("filter", "max_deliver"))

    info = await large.info()
    assert (info.filter_key_pattern, info.filter_headers, info.filter_data, info.max_deliver) == (
        None,
        None,
        None,
        None,
    )


async def test_consumer_errors_have_their_own_classes(bus: Any, stream: str, billing: Any) -> None:
    with pytest.raises(postbus.Conflict):
        await bus.create_consumer(stream, "billing")
    with pytest.raises(postbus.InvalidInput, match="max_deliver"):
        await bus.create_consumer(stream, "other", max_deliver=0)
    with pytest.raises(postbus.InvalidInput):
        await bus.create_consumer(stream, "other", filter="a..b")
    with pytest.raises(postbus.InvalidInput):
        await bus.create_consumer(stream, "other", start="latest", from_seq=1)
    with pytest.raises(postbus.InvalidInput, match="duration"):
        await bus.create_consumer(stream, "other", ack_wait="30s")
    with pytest.raises(postbus.InvalidInput):
        await billing.seek()
    for max_messages in (0, 10_001):
        with pytest.raises(postbus.InvalidInput):
            await billing.receive(max_messages)
    nobody = bus.consumer(stream, "nobody")
    for call in (nobody.receive, nobody.info, nobody.stats, nobody.peek, nobody.pause, nobody.drop):
        with pytest.raises(postbus.NotFound):
            await call()
    with pytest.raises(postbus.NotFound):
        await nobody.ack("0000000000000000-1")


async def test_a_consumer_starts_at_the_given_position(bus: Any, stream: str) -> None:
    seqs = [await bus.publish(stream, key="k", data=number) for number in range(3)]

    middle = await bus.create_consumer(stream, "middle", from_seq=seqs[1])
    end = await bus.create_consumer(stream, "end", start="latest")
    since = await bus.create_consumer(stream, "since", from_time=datetime.now(UTC) - timedelta(hours=1))

    assert [each.data for each in await middle.receive(10)] == [1, 2]
    assert not await end.receive(10)
    assert len(await since.receive(10)) == 3


async def test_pause_seek_and_drop(bus: Any, stream: str, billing: Any) -> None:
    seqs = [await bus.publish(stream, key="k", data=number) for number in range(3)]

    await billing.pause()
    assert (await billing.info()).paused
    assert not await billing.receive()
    await billing.resume()
    assert not (await billing.info()).paused

    batch = await billing.receive(10)
    assert await billing.seek("earliest") < seqs[0]
    assert await billing.ack(batch) == 0
    assert len(await billing.receive(10)) == 3
    await billing.seek(from_seq=seqs[2])
    assert [each.seq for each in await billing.receive(10)] == [seqs[2]]
    await billing.seek(from_time=datetime.now(UTC) + timedelta(hours=1))
    assert not await billing.receive(10)

    await billing.drop()
    assert await bus.list_consumers(stream) == []


async def test_stats_and_peek_show_how_far_a_consumer_has_come(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", order="none")
    seqs = [await bus.publish(stream, key=f"k.{number}", data=number) for number in range(4)]
    lost, failed, leased = [(await billing.receive())[0] for _ in range(3)]
    await billing.terminate(lost, reason="no use")
    await billing.nack(failed, delay=60, reason="later")

    stats = await billing.stats()
    assert (stats.in_flight, stats.waiting, stats.dead, stats.expired) == (1, 1, 1, 0)
    assert (stats.backlog, stats.backlog_is_exact) == (3, True)
    assert (stats.lag_estimate, stats.horizon_seq) == (1, seqs[-1])
    assert stats.oldest_in_flight_at is not None
    assert len(stats.partitions) == 4
    assert sum(each.in_flight for each in stats.partitions) == 1

    states = {each.seq: each for each in await billing.peek()}
    assert sorted(states) == seqs
    assert states[lost.seq].state == "dead"
    assert (states[failed.seq].state, states[failed.seq].reason) == ("waiting", "later")
    assert (states[leased.seq].state, states[leased.seq].attempts) == ("delivered", 1)
    assert states[leased.seq].last_delivered_at == stats.oldest_in_flight_at
    assert (await billing.peek_at(leased.seq)).last_delivered_at == stats.oldest_in_flight_at
    assert states[leased.seq].until > datetime.now(UTC)
    assert [each.seq for each in await billing.peek(state="waiting")] == [failed.seq]
    assert [each.data for each in await billing.peek(key_pattern="k.3")] == [3]
    assert len(await billing.peek(max_messages=2)) == 2
    (held,) = await billing.peek(state="delivered")
    assert held.ack_id == leased.ack_id
    assert {each.ack_id for each in await billing.peek() if each.state != "delivered"} == {None}
    assert [await billing.peek_at(seq) for seq in seqs] == [states[seq] for seq in seqs]
    assert (await billing.ack(held.ack_id), await billing.peek(state="delivered")) == (1, [])
    assert await billing.peek(after_seq=seqs[-1]) == []
    assert await billing.peek_at(held.seq) is None


async def test_a_message_is_found_by_its_seq_until_the_consumer_is_done_with_it(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", filter="orders.>")
    skipped = await bus.publish(stream, key="refunds.a", data=0)
    first, second = [await bus.publish(stream, key="orders.a", data=number) for number in (1, 2)]

    async def state_of(seq: int) -> str | None:
        found = await billing.peek_at(seq)
        return None if found is None else str(found.state)

    assert [await state_of(seq) for seq in (skipped, first, second, second + 1)] == [
        None,
        "available",
        "available",
        None,
    ]
    (delivery,) = await billing.receive()
    assert [await state_of(seq) for seq in (first, second)] == ["delivered", "available"]
    await billing.nack(delivery, delay=60, reason="later")
    await billing.receive()
    waiting, parked = [await billing.peek_at(seq) for seq in (first, second)]
    assert (waiting.state, waiting.reason, waiting.attempts) == ("waiting", "later", 1)
    assert (parked.state, parked.reason) == ("waiting", "an earlier message of its key is not done")

    await billing.seek("earliest")
    await billing.ack(await billing.receive(10))
    assert [await state_of(seq) for seq in (first, second)] == [None, None]

    await billing.replay_page(from_seq=second, max_messages=10)
    assert [await state_of(seq) for seq in (first, second)] == [None, "available"]


@pytest.mark.parametrize("seq", [-1, 2**63])
async def test_a_seq_that_cannot_be_has_no_message(bus: Any, stream: str, seq: int) -> None:
    billing = await bus.create_consumer(stream, "billing")

    with pytest.raises(postbus.InvalidInput):
        await billing.peek_at(seq)


async def test_dead_letters_are_listed_redriven_and_discarded(bus: Any, stream: str, name: str) -> None:
    billing = await bus.create_consumer(stream, "billing", order="none", max_deliver=1)
    seqs = [await bus.publish(stream, key=f"k.{number}", data=number, headers={"n": "1"}) for number in range(4)]
    await billing.nack(await billing.receive(10), reason="broken: 1")
    await bus.create_stream(f"{name}-2")

    letters = await billing.dead_letters()
    assert [(each.seq, each.data) for each in letters] == list(zip(seqs, range(4), strict=True))
    assert (letters[0].key, letters[0].headers, letters[0].attempts) == ("k.0", {"n": "1"}, 1)
    assert letters[0].reason == "broken: 1"
    assert abs(datetime.now(UTC) - letters[0].died_at) < timedelta(minutes=1)
    assert [each.seq for each in await billing.dead_letters(seqs=seqs[1:3])] == seqs[1:3]
    assert await billing.dead_letters(seqs=[]) == []
    assert await billing.dead_letters(reason_like="whole%") == []
    assert [each.data for each in await billing.dead_letters(after_seq=seqs[0], max_messages=1)] == [1]

    assert await billing.redrive(key_pattern="k.0") == 1
    assert [each.data for each in await billing.receive(10)] == [0]
    assert await billing.redrive(seqs=[seqs[1]], to_stream=f"{name}-2") == 1
    assert [each.data for each in await bus.read(f"{name}-2")] == [1]
    assert await billing.discard(seqs=[]) == 0
    assert await billing.discard(reason_like="broken%") == 2
    assert await billing.redrive() == 0


async def test_a_redrive_that_is_left_is_cancelled(bus: Any, stream: str) -> None:
    billing = await bus.create_consumer(stream, "billing", max_deliver=1)
    await bus.publish_many(stream, [postbus.Message(data=number) for number in range(30)])
    await billing.terminate(await billing.receive(30))

    async for moved in billing.redrive_steps(rate=50):  # noqa: B007
        break

    assert moved == 5
    assert len(await billing.dead_letters()) == 25


async def test_messages_are_replayed(bus: Any, stream: str, billing: Any) -> None:
    seqs = await bus.publish_many(stream, [postbus.Message(key="k", data=number) for number in range(5)])
    await billing.ack(await billing.receive(10))

    assert await billing.replay(from_seq=seqs[1], to_seq=seqs[2]) == 2

    assert [each.data for each in await billing.receive(10)] == [1, 2]


async def test_a_queue_is_a_stream_and_its_consumer(bus: Any, name: str) -> None:
    await bus.create_queue(name, ack_wait=5, max_deliver=2, backoff=[1])
    queue = bus.queue(name)

    await queue.publish({"n": 1}, key="a")
    await queue.publish_many([postbus.Message(data={"n": 2})])

    batch = await queue.receive(10)
    assert sorted(each.data["n"] for each in batch) == [1, 2]
    assert await queue.ack(batch) == 2
    assert (await bus.stream_info(name)).until_acked
    with pytest.raises(postbus.Conflict):
        await bus.create_queue(name)
    await queue.drop()
    with pytest.raises(postbus.NotFound):
        await bus.stream_info(name)

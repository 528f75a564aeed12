"""Duplicates, one message per key, history: the same over Postgres and over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import postbus

pytestmark = pytest.mark.newest_server


async def test_duplicates_are_named(bus: Any, name: str) -> None:
    await bus.create_stream(name, dedup_window=60)
    first = await bus.publish(name, data=1, dedup_id="a")
    answers = await bus.publish_many(
        name,
        [postbus.Message(data=2, dedup_id="b"), postbus.Message(data=1, dedup_id="a"), postbus.Message(data=3)],
    )

    assert [answer.is_duplicate for answer in answers] == [False, True, False]
    assert answers[1] == first
    assert [message.data for message in await bus.read(name)] == [1, 2, 3]
    scheduled = await bus.publish(name, data=4, dedup_id="c", delay=60)
    assert not scheduled.is_duplicate
    assert (await bus.publish(name, data=4, dedup_id="c", delay=60)).is_duplicate
    assert (await bus.stream_info(name)).dedup_window == timedelta(minutes=1)
    await bus.alter_stream(name, unset=("dedup_window",))
    with pytest.raises(postbus.Conflict, match="dedup_window"):
        await bus.publish(name, data=1, dedup_id="a")


async def test_the_state_of_keys_is_read_and_changed(bus: Any, name: str) -> None:
    await bus.create_stream(name, one_message_per_key=True, process_unmodified=True)
    await bus.publish_many(name, [postbus.Message(key=key, data=key) for key in ("a", "b", "c.d")])
    await bus.publish(name, key="a", data="new")

    assert [(m.key, m.data) for m in await bus.state(name)] == [("a", "new"), ("b", "b"), ("c.d", "c.d")]
    assert [m.key for m in await bus.state(name, key_pattern="c.*")] == ["c.d"]
    assert [m.key for m in await bus.state(name, after_key="a", max_messages=1)] == ["b"]
    assert await bus.delete_key(name, "c.d") is not None
    assert await bus.delete_key(name, "c.d") is None
    with pytest.raises(postbus.NotFound):
        await bus.delete_key("no-such-stream", "k")
    assert [m.key for m in await bus.state(name, key="b")] == ["b"]
    assert len(await bus.state(name)) == 2
    info = await bus.stream_info(name)
    assert (info.one_message_per_key, info.process_unmodified) == (True, True)


async def test_an_unchanged_version_of_a_key_is_a_duplicate(bus: Any, name: str) -> None:
    await bus.create_stream(name, one_message_per_key=True)
    first = await bus.publish(name, key="a", data=1)

    again = await bus.publish(name, key="a", data=1)
    answers = await bus.publish_many(name, [postbus.Message(key=key, data=1) for key in ("a", "b")])

    assert (again, again.is_duplicate) == (first, True)
    assert [answer.is_duplicate for answer in answers] == [True, False]
    assert answers[0] == first < answers[1]


async def test_history_says_what_became_of_deliveries(bus: Any, name: str) -> None:
    await bus.create_queue(name, keep_history=60, partitions=1)
    queue = bus.queue(name)
    await queue.publish({"n": 1}, key="k")
    await queue.nack(await queue.receive(wait=5), reason="busy")
    await queue.ack(await queue.receive(wait=5))

    acked, failed = await queue.history()
    assert (acked.outcome, acked.attempt, acked.last_error, acked.data) == ("acked", 2, "busy", {"n": 1})
    assert (failed.outcome, failed.attempt, failed.last_error, failed.key) == ("failed", 1, "busy", "k")
    assert acked.finished_at >= acked.received_at
    assert await queue.history(outcome="dead") == []
    assert len(await queue.history(before_time=acked.finished_at)) == 1
    assert (await queue.info()).keep_history == timedelta(minutes=1)
    await queue.alter(unset=("keep_history",), expire_after=3600)
    assert (await queue.info()).expire_after == timedelta(hours=1)

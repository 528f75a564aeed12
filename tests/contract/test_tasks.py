"""Redrives, discards and replays in the background: started, followed and cancelled in four ways."""

from __future__ import annotations

from typing import Any

import pytest

import postbus
from postbus import Message

pytestmark = pytest.mark.newest_server


@pytest.fixture
def steps(sync_buses: dict[str, postbus.Bus]) -> Any:
    """Does steps of all tasks until nothing is left to do, as an upkeep does."""

    def run() -> None:
        while sync_buses["postgres"].tasks.run():
            pass

    return run


async def with_dead_letters(bus: Any, stream: str, count: int) -> Any:
    consumer = await bus.create_consumer(stream, "worker", max_deliver=1, order="none")
    await bus.publish_many(stream, [Message(key=f"k.{n % 3}", data=n) for n in range(count)])
    while batch := await consumer.receive(100):
        await consumer.terminate(batch, reason="broken" if batch[0].data % 2 else "late")
    assert len(await consumer.dead_letters(max_messages=1000)) == count
    return consumer


async def info(bus: Any, stream: str, task: int) -> postbus.TaskInfo:
    (found,) = [each for each in await bus.tasks.list_all(stream) if each.id == task]
    assert isinstance(found, postbus.TaskInfo)
    return found


async def test_a_redrive_goes_on_in_the_background_and_tells_its_progress(bus: Any, stream: str, steps: Any) -> None:
    consumer = await with_dead_letters(bus, stream, 30)

    task = await bus.tasks.redrive(stream, "worker")
    begun = await info(bus, stream, task)
    steps()

    ended = await info(bus, stream, task)
    assert (begun.state, begun.done_count, begun.total_estimate, begun.kind) == ("running", 0, 30, "redrive")
    assert (ended.state, ended.done_count, ended.ended_at is None) == ("done", 30, False)
    assert await consumer.dead_letters() == []
    assert (await consumer.stats()).backlog == 30


async def test_what_dies_again_is_not_redriven_again(bus: Any, stream: str, steps: Any) -> None:
    consumer = await with_dead_letters(bus, stream, 5)
    task = await bus.tasks.redrive(stream, "worker")
    steps()
    while batch := await consumer.receive(10):
        await consumer.terminate(batch, reason="broken for good")
    steps()

    assert len(await consumer.dead_letters()) == 5
    assert (await info(bus, stream, task)).done_count == 5


async def test_a_redrive_takes_those_that_match_and_may_publish_them(bus: Any, stream: str, steps: Any) -> None:
    other = f"{stream}-other"
    await bus.create_stream(other)
    consumer = await with_dead_letters(bus, stream, 9)

    await bus.tasks.redrive(stream, "worker", key_pattern="k.1", to_stream=other)
    steps()

    assert sorted(message.data for message in await bus.read(other)) == [1, 4, 7]
    assert len(await consumer.dead_letters()) == 6


async def test_a_discard_removes_what_is_dead_now(bus: Any, stream: str, steps: Any) -> None:
    consumer = await with_dead_letters(bus, stream, 6)

    task = await bus.tasks.discard(stream, "worker", key_pattern="k.0")
    steps()

    assert len(await consumer.dead_letters()) == 4
    assert (await info(bus, stream, task)).total_estimate is None, "with a pattern, nothing is counted beforehand"


async def test_a_replay_delivers_a_range_again(bus: Any, stream: str, steps: Any) -> None:
    consumer = await bus.create_consumer(stream, "worker", order="none")
    await bus.publish_many(stream, [Message(key=f"k.{n}", data=n) for n in range(20)])
    while batch := await consumer.receive(100):
        await consumer.ack(batch)

    task = await bus.tasks.replay(stream, "worker", from_seq=6, to_seq=10)
    steps()

    again = [delivery.seq for _ in range(3) for delivery in await consumer.receive(100)]
    assert sorted(again) == [6, 7, 8, 9, 10]
    assert (await info(bus, stream, task)).done_count == 5


async def test_a_rate_is_kept_and_a_task_can_be_cancelled(bus: Any, stream: str, steps: Any) -> None:
    consumer = await with_dead_letters(bus, stream, 20)
    task = await bus.tasks.redrive(stream, "worker", rate=0.5)
    for _ in range(5):
        steps()
    assert (await info(bus, stream, task)).done_count <= 1

    assert await bus.tasks.cancel(stream, task)
    assert not await bus.tasks.cancel(stream, task)
    steps()

    ended = await info(bus, stream, task)
    assert ended.state == "cancelled"
    assert len(await consumer.dead_letters()) == 20 - ended.done_count


async def test_a_task_that_cannot_go_on_says_why(bus: Any, stream: str, steps: Any) -> None:
    other = f"{stream}-other"
    await bus.create_stream(other, max_message_bytes=1)
    await with_dead_letters(bus, stream, 12)
    task = await bus.tasks.redrive(stream, "worker", to_stream=other)

    steps()

    ended = await info(bus, stream, task)
    assert ended.state == "failed"
    assert "bytes" in (ended.last_error or "")
    assert await bus.read(other) == postbus.Page((), None), "a step that fails moves nothing"


async def test_what_a_task_does_not_take_is_refused(bus: Any, stream: str) -> None:
    await bus.create_consumer(stream, "worker")
    await bus.create_group(stream, "group")
    with pytest.raises(postbus.NotFound):
        await bus.tasks.redrive(stream, "nobody")
    with pytest.raises(postbus.NotFound):
        await bus.tasks.redrive(stream, "worker", to_stream="nowhere")
    with pytest.raises(postbus.InvalidInput):
        await bus.tasks.redrive(stream, "worker", key_pattern="a..b")
    with pytest.raises(postbus.InvalidInput):
        await bus.tasks.redrive(stream, "worker", rate=0)
    with pytest.raises(postbus.Conflict):
        await bus.tasks.redrive(stream, "group")
    with pytest.raises(postbus.NotFound):
        await bus.tasks.cancel(stream, 123_456_789)


async def test_what_a_consumer_could_receive_is_moved_to_another_stream(
    bus: Any, stream: str, steps: Any, sync_buses: dict[str, postbus.Bus]
) -> None:
    target = f"{stream}-moved"
    await bus.create_stream(target)
    consumer = await bus.create_consumer(stream, "worker", order="none")
    await bus.publish_many(stream, [Message(key=f"k.{n}", data=n, headers={"n": str(n)}) for n in range(25)])
    held = await consumer.receive(5)

    task = await bus.tasks.move(stream, "worker", to_stream=target)
    steps()

    ended = await info(bus, stream, task)
    moved = await bus.read(target)
    assert (ended.kind, ended.state, ended.done_count, ended.total_estimate) == ("move", "done", 20, 20)
    assert sorted([*(message.data for message in moved), *(each.data for each in held)]) == list(range(25))
    assert all(message.headers == {"n": str(message.data)} for message in moved)
    assert all(message.key == f"k.{message.data}" for message in moved)
    assert (await consumer.stats()).backlog == 5
    await bus.drop_stream(target)


async def test_dead_letters_of_other_streams_are_moved_back_and_others_end_the_task(
    bus: Any, stream: str, steps: Any
) -> None:
    dead = f"{stream}-dead"
    await bus.create_stream(dead)
    keeper = await bus.create_consumer(dead, "keeper", order="none")
    consumer = await bus.create_consumer(stream, "worker", order="none", max_deliver=1, dead_letters_to=dead)
    await bus.publish(stream, key="k", data="x", headers={"a": "b"})
    await consumer.terminate(await consumer.receive(10), reason="broken")
    assert await keeper.info()

    done = await bus.tasks.move(dead, "keeper")
    steps()
    (again,) = await consumer.receive(10)
    await bus.publish(dead, data="no dead letter")
    failed = await bus.tasks.move(dead, "keeper")
    steps()

    assert (again.data, again.key, again.headers) == ("x", "k", {"a": "b"})
    assert (await info(bus, dead, done)).state == "done"
    ended = await info(bus, dead, failed)
    assert (ended.state, "no dead letter" in (ended.last_error or "")) == ("failed", True)
    assert [each.data for each in await keeper.receive(10)] == ["no dead letter"]
    await bus.drop_stream(dead)


async def test_nothing_is_moved_to_where_it_is(bus: Any, stream: str) -> None:
    await bus.create_consumer(stream, "worker")

    with pytest.raises(postbus.InvalidInput, match="moved from"):
        await bus.tasks.move(stream, "worker", to_stream=stream)
    with pytest.raises(postbus.NotFound):
        await bus.tasks.move(stream, "worker", to_stream="nobody")

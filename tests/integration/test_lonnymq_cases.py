"""What LonnyMQ's own tests say of times, order, leases and deferral, in our words, with and without priorities."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from postbus import Message

pytestmark = pytest.mark.newest_server
ORDERS = ("key", "none")
PRIORITIES = (4, 9)


async def due_now(bus: Any, stream: str, sql: Any) -> None:
    """All that is scheduled is due, in its order."""
    sql.execute(
        "update postbus_data.scheduled set deliver_at = deliver_at - interval '10 days' where stream_id = "
        "(select s.id from postbus_data.stream as s where s.name = %s)",
        (stream,),
    )
    await bus.sweep(stream)


async def expire(bus: Any, stream: str, sql: Any) -> None:
    sql.execute(
        "update postbus_data.lease set deadline = clock_timestamp() where consumer_id in "
        "(select c.id from postbus_data.consumer as c where c.stream_name = %s)",
        (stream,),
    )
    await bus.sweep(stream)


@pytest.mark.parametrize("priority", PRIORITIES)
async def test_an_earlier_time_comes_first_whichever_was_published_first(
    bus: Any, stream: str, sql: Any, priority: int
) -> None:
    consumer = await bus.create_consumer(stream, "c")
    start = datetime.now(UTC) + timedelta(days=1)
    for seconds in (10, 5, 7):
        await bus.publish(
            stream, key="k", data=seconds, deliver_at=start + timedelta(seconds=seconds), priority=priority
        )
    assert [each.data for each in await bus.list_scheduled(stream)] == [5, 7, 10]
    assert not await consumer.receive()
    await due_now(bus, stream, sql)
    assert [each.data for each in await consumer.receive(3)] == [5, 7, 10]


async def test_of_the_same_time_the_one_published_first_comes_first(bus: Any, stream: str, sql: Any) -> None:
    consumer = await bus.create_consumer(stream, "c")
    at = datetime.now(UTC) + timedelta(days=1)
    await bus.publish_many(stream, [Message(key="k", data=n, priority=7) for n in range(5)], deliver_at=at)
    await bus.publish(stream, key="k", data=5, deliver_at=at, priority=7)
    await due_now(bus, stream, sql)
    assert [each.data for each in await consumer.receive(10)] == list(range(6))


async def test_times_are_exact_also_at_the_end_of_a_minute(bus: Any, stream: str, sql: Any) -> None:
    """Its clock went back by a minute at the end of each, because milliseconds include the seconds."""
    consumer = await bus.create_consumer(stream, "c")
    minute = (datetime.now(UTC) + timedelta(days=1)).replace(second=0, microsecond=0)
    times = [minute + timedelta(seconds=seconds) for seconds in (0, 30.6, 59, 59.9, 59.999999, 60, 60.001, 90.5)]
    for at in reversed(times):
        await bus.publish(stream, key="k", data=at.timestamp(), deliver_at=at, priority=8)
    scheduled = await bus.list_scheduled(stream)
    assert [each.deliver_at for each in scheduled] == times
    assert [each.data for each in scheduled] == [at.timestamp() for at in times]
    await due_now(bus, stream, sql)
    assert [each.data for each in await consumer.receive(10)] == [at.timestamp() for at in times]
    for offset in range(0, 61, 15):
        sql.execute("set timezone = %s" % ("'UTC'" if offset else "'Asia/Kathmandu'"))
        (row,) = sql.execute(
            "select postbus.publish(%s, data => '1', deliver_at => clock_timestamp() + interval '1 hour'), clock_timestamp()",
            (stream,),
        ).fetchall()
        (found,) = [each for each in await bus.list_scheduled(stream) if each.id == row[0]]
        assert abs((found.deliver_at - row[1]).total_seconds() - 3600) < 1


async def test_a_past_time_is_now(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    for at in (datetime(1970, 1, 1, tzinfo=UTC), datetime.now(UTC) - timedelta(milliseconds=1)):
        await bus.publish(stream, data=1, deliver_at=at, priority=9)
    assert len(await consumer.receive(1)) + len(await consumer.receive(1)) == 2


@pytest.mark.parametrize("priority", PRIORITIES)
@pytest.mark.parametrize("order", ORDERS)
async def test_a_second_receive_finds_nothing_while_the_lease_lasts_and_the_message_after_it(
    bus: Any, stream: str, sql: Any, order: Any, priority: int
) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    await bus.publish(stream, key="k", data=1, priority=priority)
    (first,) = await consumer.receive()
    assert not await consumer.receive()
    await expire(bus, stream, sql)
    (second,) = await consumer.receive()
    assert (first.attempt, second.attempt, second.priority) == (1, 2, priority)
    # An extension holds it; what named the first delivery changes nothing any more.
    assert await consumer.extend(second, ack_wait=60) == 1
    assert await consumer.extend(first, ack_wait=60) == 0
    assert await consumer.ack(first) == 0
    assert await consumer.defer(first, state=1) == 0
    await bus.sweep(stream)
    assert not await consumer.receive()
    assert await consumer.ack(second) == 1
    assert await consumer.ack(second) == await consumer.defer(second) == await consumer.extend(second, ack_wait=1) == 0


@pytest.mark.parametrize("priority", PRIORITIES)
@pytest.mark.parametrize("order", ORDERS)
async def test_a_deferred_message_is_free_at_its_time_with_its_state_and_attempts(
    bus: Any, stream: str, sql: Any, order: Any, priority: int
) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    await bus.publish(stream, key="k", data=1, priority=priority)
    await consumer.nack(await consumer.receive(), delay=0)
    (again,) = await consumer.receive(wait=5)
    assert again.attempt == 2
    await consumer.defer(again, until=datetime.now(UTC) + timedelta(hours=1), state={"page": 3})
    assert not await consumer.receive()
    (seen,) = await consumer.peek()
    assert (seen.state, seen.reason, seen.priority, seen.saved_state) == ("waiting", "deferred", priority, {"page": 3})
    sql.execute(
        "update postbus_data.waiting set due_at = clock_timestamp() - interval '1 second' where seq = %s", (seen.seq,)
    )
    # Behind what the last sweep looked at: a full one finds it.
    sql.execute("update postbus_data.sweep_state set full_sweep_at = '-infinity'")
    await bus.sweep(stream)
    (last,) = await consumer.receive(wait=5)
    assert (last.attempt, last.deferrals, last.state, last.priority) == (2, 1, {"page": 3}, priority)

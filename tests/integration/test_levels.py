"""Priorities: what goes first, what may overtake what, and what else has to go on working with them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from postbus import Conflict, InvalidInput, Message

ORDERS = ("key", "none")


async def drained(consumer: Any, size: int = 10) -> list[tuple[int, Any]]:
    """What a consumer still gets, acked: priority and data of each message."""
    found: list[tuple[int, Any]] = []
    while batch := await consumer.receive(size):
        found += [(each.priority, each.data) for each in batch]
        await consumer.ack(batch)
    return found


async def backlog(bus: Any, stream: str, count: int, priority: int = 4, start: int = 0) -> None:
    await bus.publish_many(
        stream, [Message(key=f"b{n % 7}", data=n, priority=priority) for n in range(start, start + count)]
    )


async def with_own_functions(bus: Any, stream: str) -> None:
    """The stream's own functions know of the levels in use: the short way is taken."""
    await bus.publish_many(stream, [Message(key="x", data="x", priority=priority) for priority in (0, 4, 9)])
    await bus.maintain(stream)
    await bus.purge(stream, everything=True)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("known", [False, True])
async def test_an_urgent_message_goes_before_a_backlog(bus: Any, stream: str, order: Any, known: bool) -> None:
    if known:
        await with_own_functions(bus, stream)
    consumer = await bus.create_consumer(stream, "c", order=order)
    await backlog(bus, stream, 600)
    # Until the positions of all partitions are known, and the short way is taken.
    for _ in range(20):
        await consumer.ack(await consumer.receive(2))
    for n in range(20):
        await bus.publish(stream, key=f"u{n}", data=n, priority=5 + n % 5)
        batch = await consumer.receive(3)
        assert [(each.data, each.priority) for each in batch] == [(n, 5 + n % 5)]
        await consumer.ack(batch)
        default = await consumer.receive(3)
        assert [each.priority for each in default] == [4] * 3
        await consumer.ack(default)


@pytest.mark.parametrize("order", ORDERS)
async def test_levels_come_from_the_highest_down_and_each_in_order_of_keys(bus: Any, stream: str, order: Any) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    for n in range(60):
        await bus.publish(stream, key=f"k{n % 3}", data=n, priority=n % 10)
    found = await drained(consumer, 4)
    assert [priority for priority, _ in found] == sorted((n % 10 for n in range(60)), reverse=True)
    for key in range(3):
        for priority in range(10):
            mine = [data for level, data in found if level == priority and data % 3 == key]
            assert mine == sorted(mine)


async def test_two_messages_of_a_key_are_never_in_flight_whatever_their_levels(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await bus.publish(stream, key="k", data="default")
    held = await consumer.receive()
    await bus.publish(stream, key="k", data="urgent", priority=9)
    await bus.publish(stream, key="k", data="low", priority=0)
    assert not await consumer.receive(10)
    assert [each.state for each in await consumer.peek()] == ["delivered", "waiting", "waiting"]
    await consumer.ack(held)
    urgent = await consumer.receive(10)
    assert [each.data for each in urgent] == ["urgent"]
    assert not await consumer.receive(10)
    await consumer.ack(urgent)
    assert [each.data for each in await consumer.receive(10)] == ["low"]


async def test_a_parked_urgent_message_goes_first_once_its_key_is_free(bus: Any, stream: str) -> None:
    await with_own_functions(bus, stream)
    consumer = await bus.create_consumer(stream, "c")
    await bus.publish(stream, key="k", data="default")
    held = await consumer.receive()
    await bus.publish(stream, key="k", data="urgent", priority=9)
    await backlog(bus, stream, 50)
    # It is parked behind its key, and the others go on.
    assert [each.priority for each in await consumer.receive(5)] == [4] * 5
    await consumer.ack(held)
    assert [each.data for each in await consumer.receive(5)] == ["urgent"]


@pytest.mark.newest_server
@pytest.mark.parametrize("order", ORDERS)
async def test_a_message_is_urgent_and_scheduled_at_once(bus: Any, stream: str, order: Any) -> None:
    await with_own_functions(bus, stream)
    consumer = await bus.create_consumer(stream, "c", order=order)
    await backlog(bus, stream, 50)
    await bus.publish(stream, key="u", data="urgent", priority=9, delay=0.3)
    (waiting,) = await bus.list_scheduled(stream)
    assert waiting.priority == 9
    assert [each.priority for each in await consumer.receive(5)] == [4] * 5
    await asyncio.sleep(0.4)
    await bus.sweep(stream)
    assert [(each.data, each.priority) for each in await consumer.receive(5)] == [("urgent", 9)]


@pytest.mark.newest_server
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("how", ["nack", "expiry", "defer", "redrive"])
async def test_a_retry_keeps_its_level(bus: Any, stream: str, sql: Any, order: Any, how: str) -> None:
    await with_own_functions(bus, stream)
    consumer = await bus.create_consumer(stream, "c", order=order, max_deliver=1 if how == "redrive" else None)
    await backlog(bus, stream, 30)
    await bus.publish(stream, key="low", data="low", priority=1)
    await bus.publish(stream, key="urgent", data="urgent", priority=8)
    urgent = await consumer.receive()
    if how == "expiry":
        sql.execute(
            "update postbus_data.lease set deadline = clock_timestamp() where token in (select token from postbus_data.lease)"
        )
    elif how == "defer":
        await consumer.defer(urgent, state=1)
    else:
        await consumer.nack(urgent, delay=0)
        if how == "redrive":
            assert [each.priority for each in await consumer.dead_letters()] == [8]
            await consumer.redrive()
    await bus.sweep(stream)
    again = await consumer.receive(5)
    assert [(each.data, each.priority) for each in again] == [("urgent", 8)]
    await consumer.ack(again)
    # A failure of a low level waits behind fresh messages of the default level, also when it is due.
    default = await drained_until(consumer, "low")
    assert len(default) == 30


async def drained_until(consumer: Any, last: str) -> list[Any]:
    found: list[Any] = []
    while batch := await consumer.receive(7):
        found += [each.data for each in batch]
        if found[-1] == last:
            await consumer.nack(batch, delay=0)
            break
        await consumer.ack(batch)
    assert found[-1] == last
    return found[:-1]


@pytest.mark.newest_server
@pytest.mark.parametrize("order", ORDERS)
async def test_a_low_retry_does_not_go_before_an_urgent_message(bus: Any, stream: str, order: Any) -> None:
    await with_own_functions(bus, stream)
    consumer = await bus.create_consumer(stream, "c", order=order)
    await bus.publish(stream, key="low", data="low", priority=0)
    await consumer.nack(await consumer.receive(), delay=0)
    await bus.sweep(stream)
    await bus.publish(stream, key="u", data="urgent", priority=9)
    await bus.publish(stream, key="d", data="default")
    assert [data for _, data in await drained(consumer, 1)] == ["urgent", "default", "low"]


async def test_with_ageing_a_low_level_does_not_starve(bus: Any, stream: str, sql: Any) -> None:
    consumer = await bus.create_consumer(stream, "c", ageing=60)
    await bus.publish(stream, key="low", data="low", priority=2)
    await backlog(bus, stream, 5)
    assert (await consumer.receive())[0].priority == 4
    # Waiting for three minutes makes three levels.
    number = sql.execute("select id from postbus_data.stream where name = %s", (stream,)).fetchone()[0]
    sql.execute(
        f"update postbus_data.log_{number}_1 set published_at = published_at - interval '3 minutes' where partition > 99999999"
    )
    assert [each.data for each in await consumer.receive(5)] == ["low"]
    await consumer.alter(unset=["ageing"])
    await bus.publish(stream, key="low", data="low", priority=2)
    sql.execute(
        f"update postbus_data.log_{number}_1 set published_at = published_at - interval '3 minutes' where partition > 99999999"
    )
    assert [each.priority for each in await consumer.receive(1)] == [4]


@pytest.mark.newest_server
@pytest.mark.parametrize("priority", [10, -1, 4.5, "high", True, None])
async def test_a_priority_out_of_range_is_refused_by_name(bus: Any, stream: str, priority: Any) -> None:
    with pytest.raises(InvalidInput, match=r"priority = .* is not between 0 and 9"):
        await bus.publish(stream, data=1, priority=priority)
    messages = [Message(data=1), Message(data=2, priority=priority)]
    with pytest.raises(InvalidInput, match=r"message 2 is not allowed: priority = .* is not between 0 and 9"):
        await bus.publish_many(stream, messages)
    assert not await bus.read(stream)


async def test_sql_refuses_a_priority_out_of_range_too(stream: str, sql: Any) -> None:
    with pytest.raises(psycopg.Error, match="priority = 10 is not between 0 and 9"):
        sql.execute("select postbus.publish(%s, data => '1', priority => 10)", (stream,))
    with pytest.raises(psycopg.Error, match="message 2 is not allowed: priority = -1 is not"):
        sql.execute("select postbus.publish_many(%s, data => '{1,2}', priorities => '{4,-1}')", (stream,))
    with pytest.raises(psycopg.Error, match="2 data, no bytes, no headers, no dedup ids, 1 priorities"):
        sql.execute("select postbus.publish_many(%s, data => '{1,2}', priorities => '{4}')", (stream,))
    with pytest.raises(psycopg.Error, match="priority = 11 is not between 0 and 9"):
        sql.execute("select postbus.create_schedule(%s, 's', every => '1 min', data => '1', priority => 11)", (stream,))
    assert sql.execute("select count(*) from postbus.read(%s)", (stream,)).fetchone()[0] == 0


async def test_sql_publishes_and_receives_by_level(stream: str, sql: Any) -> None:
    sql.execute("select postbus.create_consumer(%s, 'c')", (stream,))
    sql.execute("select postbus.publish_many(%s, data => '{1,2,3}', priorities => '{null,9,0}')", (stream,))
    sql.execute("select postbus.publish(%s, data => '4'::jsonb, priority => 7)", (stream,))
    found = []
    for _ in range(4):
        found += sql.execute("select data, priority from postbus.receive(%s, 'c')", (stream,)).fetchall()
    assert found == [("2", 9), ("4", 7), ("1", 4), ("3", 0)]
    assert sql.execute("select data, priority from postbus.read(%s)", (stream,)).fetchall() == [
        ("1", 4),
        ("2", 9),
        ("3", 0),
        ("4", 7),
    ]


async def test_order_partition_and_levels_refuse_each_other(bus: Any, stream: str) -> None:
    whole = await bus.create_consumer(stream, "whole", order="partition")
    with pytest.raises(
        Conflict, match='priority = 9 is not possible: consumer "whole" reads the stream in order "partition"'
    ):
        await bus.publish(stream, data=1, priority=9)
    assert not await bus.read(stream)
    await whole.drop()
    await bus.publish(stream, data=1, priority=9)
    with pytest.raises(Conflict, match="ordering = 'partition' is not possible: messages of several priorities"):
        await bus.create_consumer(stream, "whole", order="partition")


async def test_a_group_reads_all_levels(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "g")
    group = bus.group(stream, "g")
    await bus.publish_many(stream, [Message(key=f"k{n % 5}", data=n, priority=n % 10) for n in range(50)])
    found: list[Any] = []
    while ranges := await group.claim(7):
        found += [(each.data, each.priority) for each in await group.fetch(ranges)]
    assert sorted(found) == [(n, n % 10) for n in range(50)]


async def test_a_level_is_known_when_it_was_used_first_in_a_transaction(bus: Any, stream: str, connect: Any) -> None:
    await with_own_functions(bus, stream)
    consumer = await bus.create_consumer(stream, "c")
    one, two = connect(autocommit=False), connect(autocommit=False)
    two.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    two.execute("select 1")
    # Both use level 7 first, neither sees the other, and neither waits.
    one.execute("select postbus.publish(%s, 'a', '1', priority => 7)", (stream,))
    two.execute("select postbus.publish(%s, 'b', '2', priority => 7)", (stream,))
    await backlog(bus, stream, 20)
    assert not await consumer.receive()
    two.commit()
    # Behind the horizon that the other holds.
    assert not await consumer.receive()
    one.commit()
    found = await drained(consumer, 1)
    assert sorted(found[:2]) == [(7, 1), (7, 2)]
    assert sorted(found[2:]) == [(4, n) for n in range(20)]


async def test_a_level_of_a_rolled_back_transaction_leaves_nothing_behind(
    bus: Any, stream: str, connect: Any, sql: Any
) -> None:
    consumer = await bus.create_consumer(stream, "c")
    one = connect(autocommit=False)
    one.execute("select postbus.publish(%s, 'a', '1', priority => 7)", (stream,))
    one.rollback()
    await backlog(bus, stream, 5)
    assert len(await drained(consumer)) == 5
    number = sql.execute("select id from postbus_data.stream where name = %s", (stream,)).fetchone()[0]
    assert sql.execute("select count(*) from postbus_data.level where stream_id = %s", (number,)).fetchone()[0] == 0


async def test_a_waiting_receiver_gets_an_urgent_message_at_once(bus: Any, stream: str) -> None:
    await with_own_functions(bus, stream)
    consumer = await bus.create_consumer(stream, "c")
    began = datetime.now(UTC)
    receiving = asyncio.ensure_future(consumer.receive(wait=10))
    await asyncio.sleep(0.2)
    await bus.publish(stream, key="u", data="urgent", priority=9)
    assert [each.data for each in await receiving] == ["urgent"]
    assert datetime.now(UTC) - began < timedelta(seconds=3)


async def test_the_old_message_default_is_no_level(bus: Any, stream: str, sql: Any) -> None:
    await bus.publish(stream, data=1, priority=4)
    sql.execute("select postbus.publish(%s, data => '2', priority => 4)", (stream,))
    sql.execute("select postbus.publish_many(%s, data => '{3}', priorities => '{4}')", (stream,))
    number = sql.execute("select id from postbus_data.stream where name = %s", (stream,)).fetchone()[0]
    assert sql.execute("select count(*) from postbus_data.level where stream_id = %s", (number,)).fetchone()[0] == 0
    layout = sql.execute(f"select postbus_data.has_levels(last_value) from postbus_data.layout_{number}").fetchone()[0]
    assert layout is False

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


@pytest.mark.newest_server
async def test_max_ack_pending_counts_all_levels(bus: Any, stream: str) -> None:
    for order, limit, most in (("none", 7, 7), ("key", 7, 7), ("none", 1000, 1000), ("key", 1000, 1000)):
        consumer = await bus.create_consumer(stream, f"{order}-{limit}", order=order, max_ack_pending=limit)
        name = f"p{order}{limit}"
        for priority in (2, 4, 9):
            await bus.publish_many(
                stream, [Message(key=f"{name}{n}", data=n, priority=priority) for n in range(most + 50)]
            )
        count = 0
        while batch := await consumer.receive(50):
            count += len(batch)
            assert count <= limit
        # Divided among partitions, a limit may stop a little before.
        assert count > limit / 4
        await consumer.drop()
        await bus.purge(stream, everything=True)


async def test_a_stream_that_keeps_one_message_per_key_knows_levels(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=4, one_message_per_key=True)
    consumer = await bus.create_consumer(name, "c")
    await bus.publish(name, key="a", data=1)
    await bus.publish(name, key="b", data=1)
    await bus.publish(name, key="a", data=2, priority=9)
    await bus.publish(name, key="b", data=2, priority=0)
    assert await drained(consumer) == [(9, 2), (0, 2)]
    assert [(each.key, each.data, each.priority) for each in await bus.state(name)] == [("a", 2, 9), ("b", 2, 0)]
    assert (await bus.publish(name, key="a", data=2)).is_duplicate


async def test_dedup_ids_and_levels_go_together(bus: Any, name: str) -> None:
    await bus.create_stream(name, dedup_window=60)
    consumer = await bus.create_consumer(name, "c")
    messages = [Message(key="a", data=n, dedup_id=f"i{n % 3}", priority=n) for n in range(6)]
    seqs = await bus.publish_many(name, messages)
    assert [each.is_duplicate for each in seqs] == [False] * 3 + [True] * 3
    assert (await bus.publish(name, data=9, dedup_id="i0", priority=9)).is_duplicate
    assert await drained(consumer) == [(2, 2), (1, 1), (0, 0)]


@pytest.mark.newest_server
@pytest.mark.parametrize("order", ORDERS)
async def test_filters_look_at_all_levels(bus: Any, stream: str, order: Any) -> None:
    consumer = await bus.create_consumer(stream, "c", filter="wanted.>", order=order)
    await bus.publish_many(
        stream,
        [Message(key=f"{'wanted' if n % 2 else 'other'}.{n % 6}", data=n, priority=n % 10) for n in range(100)],
    )
    found = await drained(consumer)
    assert found == sorted(found, key=lambda each: -each[0])
    assert sorted(data for _, data in found) == list(range(1, 100, 2))


@pytest.mark.parametrize("order", ORDERS)
async def test_the_partition_count_changes_with_levels_in_use(bus: Any, stream: str, order: Any) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    expected = set()
    held = []
    for round_number, partitions in enumerate((4, 2, 6)):
        await bus.alter_stream(stream, partitions=partitions)
        for _ in range(2):
            await bus.maintain(stream)
        start = 100 * round_number
        await bus.publish_many(
            stream, [Message(key=f"k{n % 5}", data=n, priority=n % 10) for n in range(start, start + 40)]
        )
        expected |= set(range(start, start + 40))
        held.append(await consumer.receive(2))
        if round_number == 1:
            await consumer.nack(held[0], delay=0)
    seen = [each.data for batch in held[1:] for each in batch]
    for batch in held[1:]:
        await consumer.ack(batch)
    for _ in range(3):
        await bus.sweep(stream)
        seen += [data for _, data in await drained(consumer)]
        await bus.maintain(stream)
    assert sorted(seen) == sorted(expected)
    await bus.publish(stream, key="k1", data="default")
    await bus.publish(stream, key="k1", data="urgent", priority=9)
    assert [data for _, data in await drained(consumer)] == ["urgent", "default"]


async def test_retention_waits_for_all_levels(bus: Any, name: str, sql: Any) -> None:
    await bus.create_stream(name, partitions=2, until_acked=True)
    consumer = await bus.create_consumer(name, "c")
    await bus.publish_many(name, [Message(key=f"k{n}", data=n, priority=n % 10) for n in range(30)])
    number = sql.execute("select id from postbus_data.stream where name = %s", (name,)).fetchone()[0]

    async def begin_segment() -> None:
        sql.execute("update postbus_data.stream set roll_due = true where id = %s", (number,))
        for _ in range(4):
            await bus.maintain(name)

    await begin_segment()
    first = await consumer.receive(3)
    await consumer.ack(first)
    await begin_segment()
    found = [(each.priority, each.data) for each in first] + await drained(consumer)
    assert sorted(data for _, data in found) == list(range(30))
    await begin_segment()
    assert (await bus.stream_info(name)).message_estimate == 0
    assert sql.execute("select count(*) from postbus_data.segment where stream_id = %s", (number,)).fetchone()[0] == 1


async def test_seek_replay_and_purge_know_all_levels(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await bus.publish_many(stream, [Message(key=f"k{n}", data=n, priority=n % 10) for n in range(30)])
    assert len(await drained(consumer)) == 30
    await consumer.seek("earliest")
    assert sorted(data for _, data in await drained(consumer)) == list(range(30))
    assert await consumer.replay(from_seq=1) == 30
    again = await drained(consumer)
    assert sorted(data for _, data in again) == list(range(30))
    assert [priority for priority, _ in again] == sorted((n % 10 for n in range(30)), reverse=True)
    await bus.publish(stream, key="k", data="gone", priority=9)
    await bus.purge(stream, everything=True)
    assert not await drained(consumer)
    await bus.publish(stream, key="k", data="new", priority=9)
    assert [data for _, data in await drained(consumer)] == ["new"]


async def test_reading_by_key_finds_all_levels(bus: Any, stream: str) -> None:
    await bus.publish_many(stream, [Message(key=f"k{n % 3}", data=n, priority=n % 10) for n in range(30)])
    page = await bus.read(stream, key="k1")
    assert [(each.data, each.priority) for each in page] == [(n, n % 10) for n in range(1, 30, 3)]
    (first,) = await bus.read(stream, partition=page[0].partition, max_messages=1)
    assert first.priority == page[0].priority


async def test_dead_letters_go_elsewhere_with_their_priority(bus: Any, stream: str) -> None:
    for name in (f"{stream}-dead", f"{stream}-redriven"):
        await bus.create_stream(name)
    consumer = await bus.create_consumer(stream, "c", max_deliver=1, dead_letters_to=f"{stream}-dead")
    await bus.publish(stream, key="k", data=1, priority=7)
    await consumer.nack(await consumer.receive())
    await consumer.redrive(to_stream=f"{stream}-redriven")
    for name in (f"{stream}-dead", f"{stream}-redriven"):
        assert [each.priority for each in await bus.read(name)] == [7]


async def test_recurring_schedules_publish_with_their_priority(bus: Any, stream: str) -> None:
    await bus.schedules.create(stream, "s", every=60, data=1, priority=8)
    assert (await bus.schedules.info(stream, "s")).priority == 8
    with pytest.raises(Conflict):
        await bus.schedules.create(stream, "s", every=60, data=1, priority=7, exist_ok=True)
    await bus.schedules.run_now(stream, "s")
    await bus.schedules.alter(stream, "s", priority=2)
    await bus.schedules.run_now(stream, "s")
    assert [each.priority for each in await bus.read(stream)] == [8, 2]
    await bus.drop_stream(stream)


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


async def test_dropping_a_stream_leaves_nothing_of_its_levels(bus: Any, stream: str, sql: Any) -> None:
    number = sql.execute("select id from postbus_data.stream where name = %s", (stream,)).fetchone()[0]
    consumer = await bus.create_consumer(stream, "c")
    await bus.publish(stream, data=1, priority=9)
    await consumer.ack(await consumer.receive())
    assert not await consumer.receive()
    await bus.drop_stream(stream)
    assert sql.execute("select to_regclass(%s)", (f"postbus_data.urgent_{number}",)).fetchone()[0] is None
    assert sql.execute("select count(*) from postbus_data.level where stream_id = %s", (number,)).fetchone()[0] == 0
    assert (
        sql.execute(
            "select count(*) from postbus_data.urgent_position as u where not exists "
            "(select from postbus_data.consumer as c where c.id = u.consumer_id)"
        ).fetchone()[0]
        == 0
    )


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

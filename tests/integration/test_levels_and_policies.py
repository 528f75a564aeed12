"""What else a stream can do goes on with priorities: limits, filters, policies, retention, other partitions, seek and replay."""

from __future__ import annotations

from typing import Any

import pytest

from postbus import Conflict, Message
from tests.integration.test_levels import ORDERS, drained


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

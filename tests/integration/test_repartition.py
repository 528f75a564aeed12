"""Another number of partitions, while publishers and consumers go on: every message once, those of a key in order."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from postbus import InvalidInput, Message

pytestmark = pytest.mark.newest_server

KEYS = [f"k.{n}" for n in range(20)]


async def publish(bus: Any, stream: str, first: int, count: int, keys: list[str] = KEYS) -> None:
    """Messages that are numbered from `first` on; each key in turn."""
    await bus.publish_many(stream, [Message(key=keys[n % len(keys)], data=n) for n in range(first, first + count)])


def numbers(batch: Any) -> list[int]:
    return [delivery.data for delivery in batch]


async def drain(consumer: Any, *, fail: frozenset[int] = frozenset()) -> list[Any]:
    """Everything that is to be had, acked; some messages fail at their first delivery."""
    found: list[Any] = []
    while batch := await consumer.receive(7):
        for delivery in batch:
            if delivery.data in fail and delivery.attempt == 1:
                await consumer.nack(delivery)
            elif await consumer.ack(delivery):
                found.append(delivery)
    return found


def check_order(found: list[Any], count: int) -> None:
    assert sorted(numbers(found)) == list(range(count))
    by_key = defaultdict(list)
    for delivery in found:
        by_key[delivery.key].append(delivery.data)
    for key, given in by_key.items():
        assert given == sorted(given), key


@pytest.mark.parametrize("order", ["key", "none", "partition"])
@pytest.mark.parametrize("partitions", [3, 13])
async def test_every_message_comes_once_and_keys_in_order(bus: Any, stream: str, order: str, partitions: int) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    await publish(bus, stream, 0, 100)
    found = await consumer.receive(30)
    await consumer.ack(found)
    await bus.alter_stream(stream, partitions=partitions)
    assert (await bus.stream_info(stream)).partitions == partitions
    await publish(bus, stream, 100, 100)

    # In order "partition" nothing of a batch is taken back with a message that fails.
    found = [*found, *await drain(consumer, fail=frozenset() if order == "partition" else frozenset({50, 120}))]
    if order == "none":
        assert sorted(numbers(found)) == list(range(200))
    else:
        check_order(found, 200)
    assert {delivery.partition for delivery in found if delivery.data >= 100} <= set(range(4, 4 + partitions))
    assert (await consumer.stats()).lag_estimate == 0


async def test_changed_again_before_anybody_has_read(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    for step, partitions in enumerate((6, 6, 1, 16)):
        await publish(bus, stream, 40 * step, 40)
        await bus.alter_stream(stream, partitions=partitions)
    await publish(bus, stream, 160, 40)
    check_order(await drain(consumer, fail=frozenset({3, 77, 161})), 200)


async def test_layouts_without_messages_hide_no_messages(bus: Any, stream: str) -> None:
    for step in range(4):
        consumer = await bus.create_consumer(stream, f"c{step}", start="latest")
        await publish(bus, stream, 0, 20)
        for partitions in (2, 3, 1):
            await bus.alter_stream(stream, partitions=partitions)
        await publish(bus, stream, 20, 20)
        check_order(await drain(consumer), 40)


async def test_a_message_in_flight_holds_its_key_in_the_new_partitions(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await publish(bus, stream, 0, 2, ["a", "b"])
    held = [*await consumer.receive(1), *await consumer.receive(1)]
    await bus.alter_stream(stream, partitions=5)
    await publish(bus, stream, 2, 3, ["c", "a", "b"])  # 2 is b, 3 is c, 4 is a

    assert numbers(await consumer.receive(10)) == [3]
    await consumer.ack(next(one for one in held if one.key == "a"))
    assert numbers(await consumer.receive(10)) == [4]
    await consumer.nack([one for one in held if one.key == "b"], delay=0)
    again = await consumer.receive(10)
    assert numbers(again) == [1]
    await consumer.ack(again)
    assert numbers(await consumer.receive(10)) == [2]


async def test_failed_messages_and_those_parked_behind_them_come_first(bus: Any, stream: str) -> None:
    await bus.create_stream(f"{stream}-one", partitions=1)
    stream = f"{stream}-one"
    consumer = await bus.create_consumer(stream, "c")
    await publish(bus, stream, 0, 1, ["a"])
    await consumer.nack(await consumer.receive(1), delay=0.7, reason="no")
    await publish(bus, stream, 1, 3, ["a", "b"])  # 1 is b, 2 is a, 3 is b
    held = await consumer.receive(1)
    assert numbers(held) == [1]
    await bus.alter_stream(stream, partitions=4)
    await publish(bus, stream, 4, 2, ["a", "b"])

    # b is in flight, and a has failed: all else is parked behind them, before the change or after it.
    assert numbers(await consumer.receive(10)) == []
    assert (await consumer.stats()).waiting == 5
    await consumer.ack(held)
    second = await consumer.receive(10)
    assert numbers(second) == [3]
    await consumer.ack(second)
    assert numbers(await consumer.receive(10)) == [5]
    # a: what has failed and what was parked behind it before the change, then what came after it.
    third = await consumer.receive(10, wait=5)
    assert numbers(third) == [0, 2]
    await consumer.ack(third)
    assert numbers(await consumer.receive(10)) == [4]


async def test_a_sweep_that_began_before_the_change_ends_as_usual(bus: Any, stream: str, sql: Any) -> None:
    consumer = await bus.create_consumer(stream, "c")
    read = "select c::text from postbus_data.consumer as c where c.stream_name = %s"
    (before,) = sql.execute(read, [stream]).fetchone()
    await publish(bus, stream, 0, 100)
    await bus.alter_stream(stream, partitions=3)
    await publish(bus, stream, 100, 100)
    await drain(consumer)
    assert sql.execute(read, [stream]).fetchone() != (before,)
    # A sweep adds the positions up at most once a second.
    sql.execute("update postbus_data.sweep_state set wide_sweep_at = '-infinity'")

    sql.execute("select postbus_data.sweep_consumer(%s::postbus_data.consumer)", [before])

    await bus.sweep(stream)
    assert (await consumer.stats()).rate_estimate < 100_000


async def test_a_dead_letter_holds_its_key_and_is_redriven_first(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", on_dead="hold")
    await publish(bus, stream, 0, 1, ["a"])
    await consumer.terminate(await consumer.receive(1), reason="no")
    await bus.alter_stream(stream, partitions=3)
    await publish(bus, stream, 1, 2, ["a"])

    assert numbers(await consumer.receive(10)) == []
    assert await consumer.redrive() == 1
    first = await consumer.receive(10)
    assert numbers(first) == [0]
    await consumer.ack(first)
    assert numbers(await consumer.receive(10)) == [1, 2]


async def test_order_partition_waits_for_what_has_failed(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="partition")
    await publish(bus, stream, 0, 1)
    await consumer.nack(await consumer.receive(1), delay=0.5)
    await bus.alter_stream(stream, partitions=2)
    await publish(bus, stream, 1, 1)

    assert numbers(await consumer.receive(10)) == []
    first = await consumer.receive(10, wait=5)
    assert numbers(first) == [0]
    assert numbers(await consumer.receive(10)) == []
    await consumer.ack(first)
    assert numbers(await consumer.receive(10, wait=5)) == [1]


async def test_an_open_publisher_of_the_old_partitions_is_waited_for(bus: Any, stream: str, connect: Any) -> None:
    consumer = await bus.create_consumer(stream, "c")
    connection = connect(autocommit=False)
    connection.execute("select postbus.publish(%s, 'a', '0')", (stream,))
    await bus.alter_stream(stream, partitions=2)
    await publish(bus, stream, 1, 1, ["a"])
    assert numbers(await consumer.receive(10)) == []
    connection.commit()
    check_order(await drain(consumer), 2)


async def test_seek_back_reads_the_old_partitions_first(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await publish(bus, stream, 0, 50)
    await bus.alter_stream(stream, partitions=20)
    await publish(bus, stream, 50, 50)
    check_order(await drain(consumer), 100)
    await consumer.seek("earliest")
    check_order(await drain(consumer), 100)
    await consumer.seek("latest")
    await publish(bus, stream, 100, 10)
    assert sorted(numbers(await drain(consumer))) == list(range(100, 110))


async def test_a_consumer_created_afterwards_reads_everything(bus: Any, stream: str) -> None:
    await publish(bus, stream, 0, 50)
    await bus.alter_stream(stream, partitions=2)
    await publish(bus, stream, 50, 50)
    consumer = await bus.create_consumer(stream, "c")
    assert (await consumer.stats()).lag_estimate >= 50
    assert len(await consumer.peek(state="available")) == 100
    check_order(await drain(consumer), 100)


async def test_old_messages_are_replayed_in_order(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await publish(bus, stream, 0, 40)
    await bus.alter_stream(stream, partitions=3)
    await publish(bus, stream, 40, 40)
    await drain(consumer)
    assert await consumer.replay(from_seq=1) == 80
    check_order(await drain(consumer, fail=frozenset({0, 41})), 80)


async def test_a_group_moves_to_the_new_partitions(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "g")
    group = bus.group(stream, "g")
    await publish(bus, stream, 0, 60)
    held = await group.claim(10, lease=60)
    await bus.alter_stream(stream, partitions=3)
    await publish(bus, stream, 60, 60)

    found: list[Any] = []
    while claims := await group.claim(25, lease=60):
        found += await group.fetch(claims)
        await group.commit(claims)
    assert all(message.partition < 4 for message in found), "the old partitions are not done"
    found += await group.fetch(held)
    await group.commit(held)
    while claims := await group.claim(25):
        found += await group.fetch(claims)
    assert sorted(numbers(found)) == list(range(120))


async def test_workers_of_a_group_share_the_new_partitions(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "g")
    group = bus.group(stream, "g")
    async with group.join("w") as member:
        assert member.partitions == (0, 1, 2, 3)
        await bus.alter_stream(stream, partitions=3)
        await publish(bus, stream, 0, 30)
        assert await member.claim(10) == []
        await member.heartbeat()
        assert member.partitions == (4, 5, 6)
        assert sum(claimed.message_count for claimed in await member.claim(30)) == 30


async def test_a_queue_frees_acked_messages_in_all_partitions(bus: Any, stream: str) -> None:
    await bus.create_queue(f"{stream}-q")
    queue = bus.queue(f"{stream}-q")
    for step in range(3):
        for n in range(20):
            await queue.publish(n)
        await bus.alter_stream(f"{stream}-q", partitions=4 + step)
    found = 0
    while batch := await queue.receive(50):
        found += await queue.ack(batch)
    await bus.maintain(f"{stream}-q")
    assert found == 60
    assert (await bus.stream_info(f"{stream}-q")).start_seq == 61


async def test_keep_unread_holds_messages_of_the_new_partitions(bus: Any, stream: str) -> None:
    await bus.create_consumer(stream, "slow", keep_unread=True)
    await publish(bus, stream, 0, 10)
    await bus.alter_stream(stream, partitions=2, retain_up_to=1)
    await publish(bus, stream, 10, 10)
    await bus.alter_stream(stream, partitions=3, max_messages=1)
    await bus.maintain(stream)
    check_order(await drain(bus.consumer(stream, "slow")), 20)


async def test_max_ack_pending_holds_across_the_change(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none", max_ack_pending=1000)
    await publish(bus, stream, 0, 1000)
    first = []
    while batch := await consumer.receive(500):
        first += batch
    await bus.alter_stream(stream, partitions=2)
    await publish(bus, stream, 1000, 1000)
    second = []
    while batch := await consumer.receive(500):
        second += batch
    assert len(first) + len(second) <= 1000


async def test_the_same_number_changes_nothing(bus: Any, stream: str) -> None:
    await bus.alter_stream(stream, partitions=4)
    assert (await bus.stream_info(stream)).segment_count == 1


@pytest.mark.parametrize("partitions", [0, 1025])
async def test_a_number_out_of_range_is_refused(bus: Any, stream: str, partitions: int) -> None:
    with pytest.raises(InvalidInput, match="not between 1 and 1024"):
        await bus.alter_stream(stream, partitions=partitions)

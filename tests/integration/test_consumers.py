from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import postbus
from postbus import Exponential, Filter, Message


async def test_a_new_consumer_has_the_documented_defaults(bus: Any, stream: str) -> None:
    await bus.create_consumer(stream, "billing")

    info = await bus.consumer(stream, "billing").info()
    assert (info.stream, info.name, info.order) == (stream, "billing", "key")
    assert (info.ack_wait, info.max_ack_pending, info.max_deliver) == (timedelta(seconds=30), 10_000, None)
    assert (list(info.backoff), info.paused) == ([], False)


@pytest.mark.parametrize(
    ("settings", "range_"),
    [
        ({"ack_wait": 0}, "between 1 millisecond and 7 days"),
        ({"ack_wait": 8 * 86400}, "between 1 millisecond and 7 days"),
        ({"max_ack_pending": 0}, "between 1 and 1000000"),
        ({"max_deliver": 0}, "between 1 and 1000000"),
        ({"backoff": [-1]}, "between 0 and 30 days"),
        ({"backoff": [31 * 86400]}, "between 0 and 30 days"),
        ({"backoff": Exponential(factor=0.5)}, "between 1 and 100"),
        ({"backoff": Exponential(jitter=1.5)}, "between 0 and 1"),
        ({"order": "random"}, "one of key, none, partition"),
        ({"start": "middle"}, "earliest"),
        ({"start": "latest", "from_seq": 1}, "earliest"),
        ({"retain_dead": -1}, "between 0 and 3650 days"),
        ({"max_per_key": 0}, "between 1 and 10000"),
        ({"max_waiting": 0}, "between 1 and 1000000"),
        ({"on_dead": "panic"}, "one of continue, hold"),
        ({"on_expired": "panic"}, "one of skip, bury"),
        ({"filter": Filter(key="a..b")}, "pattern"),
        ({"filter": Filter(data="$.a >")}, "JSON path"),
    ],
)
async def test_an_impossible_setting_is_refused_with_the_allowed_range(
    bus: Any, stream: str, settings: dict[str, Any], range_: str
) -> None:
    with pytest.raises(postbus.InvalidInput) as caught:
        await bus.create_consumer(stream, "c", **settings)
    assert range_ in str(caught.value)
    assert await bus.list_consumers(stream) == []


async def test_a_name_is_taken_once_per_stream(bus: Any, stream: str) -> None:
    await bus.create_stream(f"{stream}-2")
    await bus.create_consumer(stream, "c")
    await bus.create_consumer(f"{stream}-2", "c")
    with pytest.raises(postbus.Conflict, match="exists"):
        await bus.create_consumer(stream, "c")
    with pytest.raises(postbus.InvalidInput, match="consumer name"):
        await bus.create_consumer(stream, "a b")


async def test_an_unknown_consumer_or_stream_is_an_error_with_a_hint(bus: Any, stream: str) -> None:
    for unknown in (bus.consumer(stream, "nobody"), bus.consumer("no-such", "c")):
        for call in (
            unknown.receive(),
            unknown.ack("0123456789abcdef"),
            unknown.nack("0123456789abcdef"),
            unknown.info(),
            unknown.pause(),
            unknown.seek("earliest"),
            unknown.drop(),
        ):
            with pytest.raises(postbus.NotFound, match="does not exist"):
                await call


async def test_altering_changes_only_the_given_settings(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", max_deliver=3, backoff=[1, 2])
    await consumer.alter(ack_wait=5)
    info = await consumer.info()
    assert (info.ack_wait, info.max_deliver, len(info.backoff)) == (timedelta(seconds=5), 3, 2)

    await consumer.alter(unset=("max_deliver", "backoff"))
    info = await consumer.info()
    assert (info.max_deliver, list(info.backoff)) == (None, [])
    with pytest.raises(postbus.InvalidInput):
        await consumer.alter(unset=("ack_wait",))


@pytest.mark.parametrize(
    ("start", "expected"),
    [({}, [1, 2, 3]), ({"start": "earliest"}, [1, 2, 3]), ({"start": "latest"}, []), ({"from_seq": 3}, [3])],
)
async def test_a_consumer_starts_at_the_given_position(
    bus: Any, stream: str, start: dict[str, Any], expected: list[int]
) -> None:
    await bus.publish_many(stream, [Message(key="k", data=n) for n in (1, 2, 3)])
    consumer = await bus.create_consumer(stream, "c", **start)
    await bus.publish(stream, key="k", data=4)

    assert [d.data for d in await consumer.receive(10)] == [*expected, 4]


async def test_a_consumer_may_start_at_a_time(bus: Any, stream: str, sql: Any) -> None:
    await bus.publish_many(stream, [Message(key="k", data=n) for n in range(10)])
    info = await bus.stream_info(stream)
    sql.execute(
        f"update postbus_data.log_{info.id}_1 set published_at = published_at - make_interval(mins => (10 - seq)::integer)"
    )
    fifth = [m async for m in bus.scan(stream)][4]
    consumer = await bus.create_consumer(stream, "c", from_time=fifth.published_at)

    assert [d.data for d in await consumer.receive(10)] == [4, 5, 6, 7, 8, 9]


async def test_a_paused_consumer_gives_nothing_and_continues_after(bus: Any, stream: str) -> None:
    await bus.publish_many(stream, [Message(data=1), Message(data=2)])
    consumer = await bus.create_consumer(stream, "c")
    first = await consumer.receive(1)
    await consumer.pause()

    assert list(await consumer.receive(10)) == []
    assert await consumer.ack(first) == 1
    await consumer.resume()
    assert len(await consumer.receive(10)) == 1


async def test_dropping_a_consumer_leaves_nothing_of_it(bus: Any, stream: str, sql: Any) -> None:
    await bus.publish_many(stream, [Message(data=n) for n in range(10)])
    consumer = await bus.create_consumer(stream, "c")
    batch = await consumer.receive(5)
    await consumer.ack(batch[0])
    await consumer.nack(batch[1])
    await consumer.terminate(batch[2])
    consumer_id = (await consumer.info()).id
    await consumer.drop()

    for table in ("consumer where id", "position where consumer_id", "lease where consumer_id", "waiting where consumer_id",
                  "due where consumer_id", "dead_letter where consumer_id"):  # fmt: skip
        assert sql.execute(f"select count(*) from postbus_data.{table} = {consumer_id}").fetchone() == (0,)
    tokens = [int(batch[0].ack_id[:16], 16)]
    assert sql.execute("select count(*) from postbus_data.settled where token = any(%s)", (tokens,)).fetchone() == (0,)


async def test_dropping_a_stream_takes_its_consumers_with_it(bus: Any, stream: str, sql: Any) -> None:
    consumer = await bus.create_consumer(stream, "c")
    await bus.publish(stream, data=1)
    await consumer.receive()
    consumer_id = (await consumer.info()).id
    await bus.drop_stream(stream)
    assert sql.execute("select count(*) from postbus_data.lease where consumer_id = %s", (consumer_id,)).fetchone() == (
        0,
    )


async def test_consumers_are_independent(bus: Any, stream: str) -> None:
    await bus.publish_many(stream, [Message(key=f"k{n}", data=n) for n in range(20)])
    one = await bus.create_consumer(stream, "one")
    two = await bus.create_consumer(stream, "two")
    batch = await one.receive(100)
    await one.ack(batch)

    assert sorted(d.data for d in batch) == list(range(20))
    assert sorted(d.data for d in await two.receive(100)) == list(range(20))
    assert [info.name for info in await bus.list_consumers(stream)] == ["one", "two"]


async def test_seeking_gives_up_messages_in_flight_and_reads_from_there(bus: Any, stream: str) -> None:
    await bus.publish_many(stream, [Message(key="k", data=n) for n in range(1, 6)])
    consumer = await bus.create_consumer(stream, "c")
    other = await bus.create_consumer(stream, "other", order="none")
    old = await consumer.receive(10)
    await other.receive(2)

    assert await consumer.seek(from_seq=3) == 2
    assert await consumer.ack(old) == 0
    again = await consumer.receive(10)
    assert [(d.data, d.attempt) for d in again] == [(3, 1), (4, 1), (5, 1)]
    assert await consumer.ack(again) == 3
    await consumer.seek("earliest")
    assert len(await consumer.receive(10)) == 5
    await consumer.seek("latest")
    assert list(await consumer.receive(10)) == []
    assert len(await other.receive(10)) == 3  # Nobody else was moved.


async def test_a_backoff_is_changed_as_a_whole(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", backoff=postbus.Exponential(first=1, factor=3, cap=60))
    await consumer.alter(backoff=[1, 5])
    info = await consumer.info()
    assert [delay.total_seconds() for delay in info.backoff] == [1, 5]
    assert (info.backoff_factor, info.backoff_cap) == (None, None)
    await consumer.alter(backoff=postbus.Exponential(first=2))
    assert (await consumer.info()).backoff_factor == 2


@pytest.mark.parametrize("partitions", [1, 4])
async def test_a_start_at_a_time_is_exact(bus: Any, name: str, sql: Any, partitions: int) -> None:
    await bus.create_stream(name, partitions=partitions)
    for n in range(12):
        await bus.publish(name, key=f"k{n % 5}", data=n)
    times = [message.published_at for message in await bus.read(name)]
    whole = await bus.create_consumer(name, "whole", order="none")

    for n in (0, 1, 5, 11):
        consumer = await bus.create_consumer(name, f"from-{n}", order="none", from_time=times[n])
        await whole.seek(from_time=times[n])
        for reader in (consumer, whole):
            found: list[Any] = []
            while batch := await reader.receive(100):
                found += [delivery.data for delivery in batch]
            assert sorted(found) == list(range(n, 12))
    after = await bus.create_consumer(name, "after", order="none", from_time=times[-1] + timedelta(microseconds=1))
    assert not await after.receive(100)
    await bus.publish(name, data="new")
    assert [delivery.data for delivery in await after.receive(100)] == ["new"]


async def test_a_start_at_a_time_misses_nothing_of_open_publishers(bus: Any, stream: str, connect: Any) -> None:
    await bus.publish(stream, data="before")
    (before,) = await bus.read(stream)
    with connect(autocommit=False) as publisher:
        publisher.execute("select postbus.publish(%s, data => '\"open\"')", (stream,))
        await bus.publish(stream, data="after")
        consumer = await bus.create_consumer(
            stream, "c", order="none", from_time=before.published_at + timedelta(microseconds=1)
        )
        publisher.commit()

    found: list[Any] = []
    while batch := await consumer.receive(100):
        found += [delivery.data for delivery in batch]
    assert {"open", "after"} <= set(found)

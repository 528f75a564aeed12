"""Deferral: what is left of a state, who wins when several settle a message, and what a transaction does with it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Conflict, Message

pytestmark = pytest.mark.newest_server
ORDERS = ("none", "key", "partition")


def saved(sql: Any, stream: str) -> list[tuple[int, int, Any]]:
    """The rows that hold states of a stream's consumers."""
    found: list[tuple[int, int, Any]] = sql.execute(
        "select s.seq, s.deferrals, s.state from postbus_data.saved as s "
        "join postbus_data.consumer as c on c.id = s.consumer_id where c.stream_name = %s order by s.seq",
        (stream,),
    ).fetchall()
    return found


async def deferred(bus: Any, stream: str, count: int = 1, **settings: Any) -> Any:
    """A consumer that has deferred messages."""
    consumer = await bus.create_consumer(stream, "c", **settings)
    await bus.publish_many(stream, [Message(key="k", data=n) for n in range(count)])
    batch = await consumer.receive(count)
    assert await consumer.defer(batch, state="s") == len(batch) == count
    return consumer


async def expire(bus: Any, stream: str, sql: Any) -> None:
    """Every lease of a stream ends now."""
    sql.execute(
        "update postbus_data.lease set deadline = clock_timestamp() where consumer_id in "
        "(select c.id from postbus_data.consumer as c where c.stream_name = %s)",
        (stream,),
    )
    await bus.sweep(stream)


@pytest.mark.parametrize("order", ORDERS)
async def test_the_state_is_gone_when_the_message_is_acked(bus: Any, stream: str, sql: Any, order: Any) -> None:
    consumer = await deferred(bus, stream, 6, order=order)
    assert len(saved(sql, stream)) == 6
    batch = await consumer.receive(6, wait=5)
    assert [(each.state, each.attempt) for each in batch] == [("s", 1)] * 6
    # One by its id, some of a lease, one split off by an extension, the rest by the token of the lease.
    assert await consumer.ack(batch[0]) == 1
    assert await consumer.ack([batch[1], batch[2]]) == 2
    assert await consumer.extend(batch[3], ack_wait=60) == 1
    assert await consumer.ack(batch) == 3
    assert saved(sql, stream) == []


async def test_an_ack_that_rides_on_a_receive_removes_the_state(bus: Any, stream: str, sql: Any) -> None:
    consumer = await deferred(bus, stream)
    batch = await consumer.receive(wait=5)
    assert (await consumer.receive(ack=batch)).acked_count == 1
    assert saved(sql, stream) == []
    await bus.publish(stream, data=1)
    await consumer.defer(await consumer.receive())
    async for each in consumer.batches(wait=1):
        assert [delivery.deferrals for delivery in each] == [1]
    assert saved(sql, stream) == []


@pytest.mark.parametrize("order", ORDERS)
async def test_a_late_ack_removes_the_state(bus: Any, stream: str, sql: Any, order: Any) -> None:
    consumer = await deferred(bus, stream, order=order)
    batch = await consumer.receive(wait=5)
    await expire(bus, stream, sql)
    assert await consumer.ack(batch) == 1
    assert saved(sql, stream) == []


async def test_the_state_is_gone_with_its_consumer_a_seek_or_a_discarded_dead_letter(
    bus: Any, stream: str, sql: Any, name: str
) -> None:
    consumer = await deferred(bus, stream, 3)
    batch = sorted(await consumer.receive(3, wait=5), key=lambda each: each.seq)
    await consumer.terminate(batch[:2])
    await consumer.seek("latest")
    assert [seq for seq, _, _ in saved(sql, stream)] == [each.seq for each in batch[:2]]
    assert await consumer.discard(seqs=[batch[0].seq]) == 1
    assert [seq for seq, _, _ in saved(sql, stream)] == [batch[1].seq]
    await bus.create_stream(f"{name}-other")
    await consumer.redrive(to_stream=f"{name}-other")
    assert saved(sql, stream) == []

    await bus.publish(stream, data=1)
    await consumer.defer(await consumer.receive(wait=5))
    await consumer.drop()
    assert sql.execute(
        "select count(*) from postbus_data.saved as s where s.consumer_id not in (select c.id from postbus_data.consumer as c)"
    ).fetchone() == (0,)


@pytest.mark.parametrize("order", ORDERS)
async def test_the_state_is_gone_when_the_time_to_live_of_the_message_is_over(
    bus: Any, stream: str, sql: Any, order: Any
) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    await bus.publish(stream, key="k", data=1, ttl=0.5)
    assert await consumer.defer(await consumer.receive(), delay=0.6, state="s") == 1
    assert not await consumer.receive(wait=1)
    assert saved(sql, stream) == []


@pytest.mark.parametrize("order", ORDERS)
async def test_a_deferral_after_the_lease_has_expired_counts_until_somebody_else_has_the_message(
    bus: Any, stream: str, sql: Any, order: Any
) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order, max_deliver=1)
    await bus.publish(stream, key="k", data=1)
    batch = await consumer.receive()
    await expire(bus, stream, sql)
    assert len(await consumer.dead_letters()) == 1
    assert await consumer.defer(batch, state="saved late") == 1
    assert await consumer.dead_letters() == []
    (again,) = await consumer.receive(wait=5)
    assert (again.attempt, again.deferrals, again.state) == (1, 1, "saved late")
    # The one who had it before comes too late now.
    assert await consumer.defer(batch, state="too late") == 0
    assert saved(sql, stream) == [(again.seq, 1, "saved late")]


async def test_of_a_deferral_and_an_ack_at_the_same_time_one_counts(bus: Any, stream: str, url: str, sql: Any) -> None:
    await bus.create_consumer(stream, "c")
    for number in range(20):
        await bus.publish(stream, data=number)
        with postbus.connect(url) as one, postbus.connect(url) as two, ThreadPoolExecutor(2) as threads:
            batch = one.consumer(stream, "c").receive(wait=5)
            start = threading.Barrier(2)

            def settle(how: Any, start: Any = start, batch: Any = batch) -> int:
                start.wait()
                return int(how(batch[0]))

            acked = threads.submit(settle, one.consumer(stream, "c").ack)
            put_off = threads.submit(settle, two.consumer(stream, "c").defer)
            counts = acked.result(), put_off.result()
            assert sorted(counts) == [0, 1]
            assert len(saved(sql, stream)) == counts[1]
            if counts[1]:
                assert one.consumer(stream, "c").ack(one.consumer(stream, "c").receive(wait=5)) == 1


@pytest.mark.parametrize("order", ORDERS)
async def test_a_deferral_that_races_the_expiry_of_its_lease_counts_once(
    bus: Any, stream: str, url: str, sql: Any, order: Any
) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    seq = await bus.publish(stream, key="k", data=1)
    for number in range(20):
        batch = await consumer.receive(wait=5)
        await consumer.extend(batch, ack_wait=0.001, shorten=True)
        with postbus.connect(url) as other, ThreadPoolExecutor(2) as threads:
            swept = threads.submit(other.sweep, stream)
            put_off = threads.submit(other.consumer(stream, "c").defer, batch[0], state=number)
            swept.result()
            assert put_off.result() == 1
        assert saved(sql, stream) == [(seq, number + 1, number)]
        assert (await consumer.peek_at(seq)).attempts == 0


async def test_a_deferral_in_a_transaction_of_the_caller_is_undone_with_it(
    bus: Any, stream: str, url: str, sql: Any
) -> None:
    with postbus.connect(url) as plain:
        consumer = plain.create_consumer(stream, "c")
        plain.publish(stream, data=1)
        batch = consumer.receive()
        with psycopg.connect(url) as connection:
            assert consumer.defer(batch, state=b"lost", connection=connection) == 1
            connection.rollback()
            assert saved(sql, stream) == []
            assert consumer.defer(batch, state={"kept": True}, connection=connection) == 1
        assert [each.state for each in consumer.receive(wait=5)] == [{"kept": True}]


async def test_a_group_defers_nothing(bus: Any, stream: str, sql: Any) -> None:
    await bus.create_group(stream, "g")
    with pytest.raises(Conflict, match="is a group"):
        await bus.consumer(stream, "g").defer("0123456789abcdef")


@pytest.mark.parametrize("order", ORDERS)
async def test_deferring_a_message_for_ever_leaves_no_rows_behind(bus: Any, stream: str, sql: Any, order: Any) -> None:
    """A week of work every ten minutes is 1,008 deferrals."""
    consumer = await bus.create_consumer(stream, "c", order=order, max_deliver=3)
    seq = await bus.publish(stream, key="k", data="every ten minutes")
    for number in range(1008):
        (delivery,) = await consumer.receive(wait=5)
        assert (delivery.seq, delivery.attempt, delivery.deferrals) == (seq, 1, number)
        assert await consumer.defer(delivery, state={"ran": number}) == 1
    tables = (
        "saved",
        "waiting",
        "due",
        "lease",
        "position",
        "redelivery_position",
        "sweep_state",
        "parked",
        "dead_letter",
    )
    counts = {
        table: sql.execute(
            f"select count(*) from postbus_data.{table} as t "
            "join postbus_data.consumer as c on c.id = t.consumer_id where c.stream_name = %s",
            (stream,),
        ).fetchone()[0]
        for table in tables
    }
    assert counts["saved"] == 1
    assert sum(counts.values()) <= 16
    sql.execute("vacuum postbus_data.saved")
    assert sql.execute("select pg_total_relation_size('postbus_data.saved') < 1048576").fetchone() == (True,)


async def test_in_sql_a_deferred_message_comes_with_its_state(bus: Any, stream: str, sql: Any) -> None:
    await bus.create_consumer(stream, "c")
    await bus.publish(stream, data=1)

    def receive() -> tuple[Any, ...]:
        columns = "ack_id, attempt, deferrals, state, state_bytes"
        while (row := sql.execute(f"select {columns} from postbus.receive(%s, 'c')", (stream,)).fetchone()) is None:
            pass
        return tuple(row)

    def defer(ack_id: str, how: str) -> None:
        assert sql.execute(f"select postbus.defer(%s, 'c', %s, {how})", (stream, ack_id)).fetchone() == (1,)

    (first, *rest) = receive()
    assert rest == [1, 0, None, None]
    defer(first, "state => '{\"page\": 7}'")
    (second, *rest) = receive()
    assert rest == [1, 1, '{"page": 7}', None]
    defer(second, "state_bytes => '\\x00ff'")
    (third, *rest) = receive()
    assert rest == [1, 2, None, b"\x00\xff"]
    defer(third, "state => 'null', until => now() - interval '1 hour'")
    (last, *rest) = receive()
    assert rest == [1, 3, None, None]
    with pytest.raises(psycopg.Error, match="until = infinity is too far away"):
        defer(last, "until => 'infinity'")
    assert sql.execute("select postbus.ack(%s, 'c', %s)", (stream, last)).fetchone() == (1,)

"""An ack that comes after its lease has expired counts as long as nobody else has received the message."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message

pytestmark = pytest.mark.newest_server
ORDERS = ("none", "key", "partition")


async def _expire(bus: Any, stream: str, sql: Any, *, sweeps: int = 1) -> None:
    """Every lease of a stream ends now."""
    sql.execute(
        "update postbus_data.lease set deadline = clock_timestamp() where consumer_id in "
        "(select c.id from postbus_data.consumer as c where c.stream_name = %s)",
        (stream,),
    )
    for _ in range(sweeps):
        await bus.sweep(stream)


async def _received(bus: Any, stream: str, count: int = 3, **settings: Any) -> tuple[Any, Any]:
    """A consumer, and a batch that it has received: one lease."""
    consumer = await bus.create_consumer(stream, "c", **settings)
    await bus.publish_many(stream, [Message(key="k", data=n) for n in range(count)])
    batch = await consumer.receive(count)
    assert len(batch) == count
    return consumer, batch


@pytest.mark.parametrize("sweeps", [0, 1, 2])
@pytest.mark.parametrize("order", ORDERS)
async def test_a_late_ack_counts_before_and_after_a_sweep(
    bus: Any, stream: str, sql: Any, order: str, sweeps: int
) -> None:
    consumer, batch = await _received(bus, stream, order=order)
    await _expire(bus, stream, sql, sweeps=sweeps)

    assert await consumer.ack(batch[1]) == 1
    assert await consumer.ack(batch) == 2
    assert await consumer.ack(batch) == 0
    assert not await consumer.receive(10)
    stats = await consumer.stats()
    assert (stats.in_flight, stats.waiting, stats.dead) == (0, 0, 0)


async def test_a_late_ack_counts_for_a_queue_and_the_message_is_gone(bus: Any, name: str, sql: Any) -> None:
    await bus.create_queue(name)
    queue = bus.queue(name)
    await queue.publish(1)
    batch = await queue.receive()
    await _expire(bus, name, sql)

    assert await queue.ack(batch) == 1
    assert not await queue.receive()


@pytest.mark.parametrize("order", ORDERS)
async def test_a_late_ack_is_refused_once_somebody_else_has_the_message(
    bus: Any, stream: str, sql: Any, order: str
) -> None:
    consumer, batch = await _received(bus, stream, order=order)
    await _expire(bus, stream, sql)
    (again,) = await consumer.receive(1)

    assert await consumer.ack(batch) == 2
    assert await consumer.ack([d for d in batch if d.seq == again.seq]) == 0
    # Also after the second lease has expired: somebody else had it in between.
    await _expire(bus, stream, sql)
    assert await consumer.ack(batch) == 0
    assert await consumer.ack(again) == 1
    assert not await consumer.receive(10)


async def test_a_late_ack_after_a_seek_or_a_redrive_counts_nothing(bus: Any, stream: str, sql: Any) -> None:
    consumer, batch = await _received(bus, stream, order="none", max_deliver=1)
    await _expire(bus, stream, sql)
    assert await consumer.redrive(seqs=[batch[0].seq]) == 1
    assert await consumer.ack(batch[0]) == 0

    await consumer.seek("earliest")
    assert await consumer.ack(batch) == 0
    assert len(await consumer.dead_letters()) == 2


async def test_a_late_ack_takes_a_message_back_from_the_dead_letters(bus: Any, stream: str, sql: Any) -> None:
    consumer, batch = await _received(bus, stream, max_deliver=1)
    await _expire(bus, stream, sql)
    assert len(await consumer.dead_letters()) == 3

    assert await consumer.ack(batch) == 3
    assert await consumer.dead_letters() == []


@pytest.mark.parametrize("order", ORDERS)
async def test_a_late_ack_counts_for_the_expired_piece_of_a_lease(bus: Any, stream: str, sql: Any, order: str) -> None:
    consumer, batch = await _received(bus, stream, order=order)
    await consumer.extend(batch[2], ack_wait=3600)
    sql.execute(
        "update postbus_data.lease as l set deadline = clock_timestamp() from postbus_data.consumer as c "
        "where c.stream_name = %s and l.consumer_id = c.id and l.piece = 0",
        (stream,),
    )
    await bus.sweep(stream)

    # In order "key", later messages of the key went back with those that expired, untried.
    assert await consumer.ack(batch) == (2 if order == "key" else 3)


async def test_late_nacks_and_extensions_count_nothing_and_a_late_terminate_counts(
    bus: Any, stream: str, sql: Any
) -> None:
    consumer, batch = await _received(bus, stream, order="none")
    await _expire(bus, stream, sql)

    assert await consumer.nack(batch, delay=3600) == 0
    assert await consumer.extend(batch) == 0
    assert await consumer.terminate(batch[0], reason="poison") == 1
    assert [(letter.seq, letter.reason) for letter in await consumer.dead_letters()] == [(batch[0].seq, "poison")]
    assert {d.seq for d in await consumer.receive(10)} == {batch[1].seq, batch[2].seq}


async def test_the_history_says_acked_after_a_late_ack(bus: Any, stream: str, sql: Any) -> None:
    consumer, batch = await _received(bus, stream, count=1, keep_history=3600)
    await _expire(bus, stream, sql)
    assert [entry.outcome for entry in await consumer.history()] == ["failed"]

    assert await consumer.ack(batch) == 1
    assert [(entry.outcome, entry.attempt) for entry in await consumer.history()] == [("acked", 1)]


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("order", ORDERS)
def test_a_late_ack_and_a_receive_at_the_same_time_do_not_both_get_the_message(
    fresh_url: str, order: Any, commits: bool
) -> None:
    with (
        postbus.connect(fresh_url) as bus,
        psycopg.connect(fresh_url) as acking,
        psycopg.connect(fresh_url, autocommit=True) as sql,
        ThreadPoolExecutor() as threads,
    ):
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c", order=order)
        bus.publish("s", key="k", data=1)
        batch = consumer.receive()
        sql.execute("update postbus_data.lease set deadline = clock_timestamp()")
        bus.sweep()

        assert consumer.ack(batch, connection=acking) == 1
        # Nobody waits for the transaction, and nobody gets the message meanwhile.
        assert not consumer.receive(1)
        receiving = threads.submit(consumer.receive, 1, wait=2)
        (acking.commit if commits else acking.rollback)()
        assert len(receiving.result()) == (0 if commits else 1)


@pytest.mark.parametrize("order", ["key", "partition"])
def test_what_lies_before_a_message_that_a_late_ack_holds_is_redelivered_in_order(fresh_url: str, order: Any) -> None:
    with postbus.connect(fresh_url) as bus, psycopg.connect(fresh_url) as acking:
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c", order=order)
        bus.publish_many("s", [Message(key=key, data=n) for n, key in enumerate("abab")])
        batch = consumer.receive(4)
        with psycopg.connect(fresh_url, autocommit=True) as sql:
            sql.execute("update postbus_data.lease set deadline = clock_timestamp()")
        bus.sweep()

        assert consumer.ack(batch[2], connection=acking) == 1
        before = consumer.receive(4)
        assert [delivery.data for delivery in before] == [0, 1]
        assert not consumer.receive(4)
        consumer.ack(before)
        acking.rollback()
        assert [delivery.data for delivery in consumer.receive(4)] == [2, 3]

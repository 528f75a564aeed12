"""A loop over batches does not wait for the disk, and whatever else goes on meanwhile is as it always is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message
from tests.buses import AwaitableBus

_COUNT = 300
_LEASED = "select count(*) from postbus_data.lease where token = (%s)::bit(64)::bigint"


@pytest.fixture(params=["sync", "async"])
async def small_bus(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Any]:
    """A bus with two connections."""
    if request.param == "async":
        async with await postbus.connect_async(url, pool_size=2) as bus:
            yield bus
    else:
        with postbus.connect(url, pool_size=2) as sync_bus:
            yield AwaitableBus(sync_bus)


async def fill(bus: Any, stream: str) -> None:
    await bus.publish_many(stream, [Message(key=f"k{n}", data=n) for n in range(_COUNT)])


def sessions_of(sql: psycopg.Connection[Any], state: str) -> list[int]:
    statement = (
        "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and state = %s"
    )
    return [pid for (pid,) in sql.execute(statement, (state,))]


async def test_more_loops_than_connections_with_calls_of_their_own(small_bus: Any, name: str) -> None:
    for stream in (name, f"{name}-echo"):
        await small_bus.create_stream(stream, partitions=4)
    consumer = await small_bus.create_consumer(name, "c", order="none")
    await fill(small_bus, name)

    async def loop() -> list[int]:
        seen: list[int] = []
        async for batch in consumer.batches(5, wait=0.5):
            await small_bus.publish(f"{name}-echo", data=len(batch))
            seen += [delivery.data for delivery in batch]
        return seen

    found = await asyncio.wait_for(asyncio.gather(*(loop() for _ in range(6))), 60)
    assert sorted(n for seen in found for n in seen) == list(range(_COUNT))


async def test_a_batch_being_handled_is_leased_to_no_other_worker(
    bus: Any, stream: str, sql: psycopg.Connection[Any]
) -> None:
    """Its claim is committed, and only its way to the disk is not waited for: others neither get nor miss it."""
    consumer = await bus.create_consumer(stream, "c", order="none")
    await fill(bus, stream)

    async with aclosing(consumer.batches(10, wait=0)) as batches:
        for _ in range(5):
            batch = await anext(batches)
            leases = [("x" + lease,) for lease in batch.leases]
            found = [sql.execute(_LEASED, lease).fetchone() for lease in leases]
            assert found == [(1,)] * len(leases)


async def test_a_loop_whose_connection_is_lost_says_so_and_the_next_continues(
    bus: Any, stream: str, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("_async", "_sync"):
        monkeypatch.setattr(f"postbus.transport.{module}.batches._FLUSH_SECONDS", 60.0)
    consumer = await bus.create_consumer(stream, "c", order="none", ack_wait=0.5)
    await fill(bus, stream)

    batches = consumer.batches(10, wait=0)
    seen = [delivery.data for _ in range(5) for delivery in await anext(batches)]
    for pid in sessions_of(sql, "idle"):
        sql.execute("select pg_terminate_backend(%s, 5000)", (pid,))

    async def go_on() -> None:
        async for batch in batches:
            seen.extend(delivery.data for delivery in batch)

    with pytest.raises(postbus.ConnectionLost):
        await go_on()
    seen += [delivery.data async for batch in consumer.batches(10, wait=3) for delivery in batch]

    assert set(seen) == set(range(_COUNT))
    stats = await consumer.stats()
    assert (stats.lag_estimate, stats.in_flight, stats.waiting) == (0, 0, 0)


async def test_a_connection_that_dies_while_a_batch_is_handled_for_long_goes_unnoticed(
    bus: Any, stream: str, sql: psycopg.Connection[Any]
) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")
    await fill(bus, stream)

    seen: list[int] = []
    async for batch in consumer.batches(50, wait=0):
        seen += [delivery.data for delivery in batch]
        if len(seen) == 150:
            for pid in sessions_of(sql, "idle"):
                sql.execute("select pg_terminate_backend(%s, 5000)", (pid,))
            await asyncio.sleep(0.2)

    assert sorted(seen) == list(range(_COUNT))


async def test_a_cancelled_loop_leaves_the_bus_in_order(url: str, name: str) -> None:
    async with await postbus.connect_async(url, pool_size=1) as bus:
        await bus.create_stream(name)
        consumer: Any = await bus.create_consumer(name, "c", order="none", ack_wait=0.5)
        await bus.publish_many(name, [Message(key=f"k{n}", data=n) for n in range(2000)])
        seen: set[int] = set()

        async def loop() -> None:
            async with aclosing(consumer.batches(3, wait=0)) as batches:
                async for batch in batches:
                    seen.update(delivery.data for delivery in batch)

        for turn in range(20):
            task = asyncio.create_task(loop())
            await asyncio.sleep(0.003 * turn)
            task.cancel()
            await asyncio.wait([task])
            assert await bus.publish(name, data=2000 + turn)
        async for batch in consumer.batches(1000, wait=2):
            seen.update(delivery.data for delivery in batch)

        assert seen == set(range(2020))


async def test_a_loop_works_on_a_stream_created_again_under_its_name(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")
    await fill(bus, stream)
    async with aclosing(consumer.batches(10, wait=0)) as batches:
        await anext(batches)
        await anext(batches)
        await bus.drop_stream(stream)
        await bus.create_stream(stream, data_type="text")
        await bus.create_consumer(stream, "c", order="none")
        await bus.publish(stream, data="new")
        assert [delivery.data for delivery in await anext(batches)] == ["new"]

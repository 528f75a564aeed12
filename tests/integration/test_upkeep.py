"""The library's upkeep: what is due is done without anybody receiving, and it outlives what goes wrong."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import postbus
from postbus import Message
from tests.waiting import until

pytestmark = pytest.mark.newest_server


@contextmanager
def running(upkeep: postbus.Upkeep) -> Iterator[None]:
    thread = threading.Thread(target=upkeep.run)
    thread.start()
    yield
    upkeep.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_due_work_is_done_while_nobody_receives(url: str, name: str) -> None:
    with postbus.connect(url) as bus:
        bus.create_stream(name, partitions=1, segment_bytes=65536, max_messages=10)
        consumer = bus.create_consumer(name, "c", order="none", max_deliver=1, ack_wait=0.2)
        bus.publish_many(name, [Message(data="x" * 1500) for _ in range(100)])
        consumer.receive(1)
        bus.publish(name, data="later", delay=0.3)
        with running(bus.upkeep()):
            until(lambda: bus.read(name, max_messages=1, backwards=True)[0].data == "later", "the schedule")
            until(consumer.dead_letters, "an expired lease")
            until(lambda: bus.stream_info(name).start_seq > 80, "retention")


def test_an_outage_is_logged_once_and_the_next_turn_is_tried(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with postbus.connect(url) as bus:
        turns: list[int] = []
        sweep = bus.sweep

        def failing_twice(stream: str | None = None) -> int:
            turns.append(1)
            if len(turns) <= 2:
                raise postbus.Unavailable("Postgres is away")
            return sweep(stream)

        monkeypatch.setattr(bus, "sweep", failing_twice)
        with running(bus.upkeep()):
            until(lambda: len(turns) > 2, "the third turn")
    assert caplog.text.count("Postgres is away") == 1


async def test_upkeep_runs_as_a_task(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        upkeep = bus.upkeep()
        task = asyncio.create_task(upkeep.run())
        await bus.publish(name, key="a", data=1, delay=0.1)
        async with asyncio.timeout(20):
            while not await bus.read(name):
                await asyncio.sleep(0.05)
        upkeep.stop()
        await asyncio.wait_for(task, 10)


async def test_a_sweep_of_idle_consumers_writes_nothing_and_misses_nothing(bus: Any, stream: str, sql: Any) -> None:
    def mark() -> Any:
        statement = """
            select s.swept_to from postbus_data.sweep_state as s join postbus_data.consumer as c on c.id = s.consumer_id
            where c.stream_name = %s order by s.swept_to desc limit 1
        """
        ((swept_at,),) = sql.execute(statement, (stream,)).fetchall()
        return swept_at

    consumer = await bus.create_consumer(stream, "c", order="none", ack_wait=0.4)
    await bus.sweep(stream)
    idle = mark()
    await asyncio.sleep(1.1)
    await bus.sweep(stream)
    assert mark() == idle

    await bus.publish(stream, key="k", data=1)
    assert len(await consumer.receive()) == 1
    await bus.sweep(stream)
    swept = mark()
    assert swept > idle
    await asyncio.sleep(0.5)
    assert await bus.sweep(stream) == 1
    assert [each.attempt for each in await consumer.receive()] == [2]


@pytest.mark.parametrize("order", ["none", "key"])
async def test_leases_that_expired_while_nobody_swept_are_redelivered_by_the_next_sweeps(
    bus: Any, stream: str, sql: Any, order: str
) -> None:
    """More than one sweep takes (1,000 leases), and longer ago than a sweep looks back."""
    consumer = await bus.create_consumer(stream, "c", order=order, max_ack_pending=10_000)
    await bus.sweep(stream)
    await bus.publish_many(stream, [Message(key=f"k{n}", data=n) for n in range(1500)])
    for _ in range(1500):
        assert len(await consumer.receive(1)) == 1
    sql.execute(
        """
        update postbus_data.lease set deadline = clock_timestamp() - interval '30 seconds'
        where consumer_id = (select id from postbus_data.consumer where stream_name = %s)
        """,
        (stream,),
    )
    # As it is when a full pass, which looks at everything, has just been.
    sql.execute(
        """
        update postbus_data.sweep_state
        set full_sweep_at = clock_timestamp(),
            swept_to = clock_timestamp() - interval '40 seconds'
        where consumer_id = (select id from postbus_data.consumer where stream_name = %s)
        """,
        (stream,),
    )
    for _ in range(3):
        await bus.sweep(stream)
    leases = "select count(*) from postbus_data.lease as l join postbus_data.consumer as c on c.id = l.consumer_id"
    statement = f"{leases} where c.stream_name = %s".encode()
    assert sql.execute(statement, (stream,)).fetchall() == [(0,)]

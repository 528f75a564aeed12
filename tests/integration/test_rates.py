"""How fast a stream and its consumers move, and how much there is to do, without scanning."""

from __future__ import annotations

import asyncio
from typing import Any

from postbus import Message


async def test_rates_and_backlog_are_estimates(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")
    assert (await consumer.stats()).rate_estimate == 0
    assert await bus.publish_rate(stream) == 0

    await bus.publish_many(stream, [Message(key=f"k{n}", data=n) for n in range(600)])
    rate = await bus.publish_rate(stream)
    assert 9 <= rate <= 11  # Of a minute.
    counts = await bus.publish_counts(stream, span=60, buckets=6)
    assert len(counts) == 6
    assert sum(counts) == counts[-1] == 600
    assert await bus.publish_counts(stream, span=0.001, buckets=1) == [0]
    await bus.sweep(stream)
    for _ in range(3):
        batch = await consumer.receive(100)
        await consumer.ack(batch)
        await asyncio.sleep(0.6)
    stats = await consumer.stats()
    assert stats.rate_estimate is not None
    assert 20 < stats.rate_estimate < 1000
    assert 250 <= stats.lag_estimate <= 350

    failed = await consumer.receive(10)
    await consumer.nack(failed[:5], delay=60)
    stats = await consumer.stats()
    assert stats.in_flight == 5
    assert stats.waiting == 5
    assert stats.backlog_estimate == stats.lag_estimate + 10


async def test_the_backlog_is_one_number_in_sql(bus: Any, stream: str, sql: Any) -> None:
    consumer = await bus.create_consumer(stream, "c", order="none")

    def backlog() -> int:
        return int(sql.execute("select postbus.backlog(%s, 'c')", (stream,)).fetchone()[0])

    assert backlog() == 0
    await bus.publish_many(stream, [Message(key=f"k{n}", data=n) for n in range(100)])
    assert 80 <= backlog() <= 120  # An estimate.
    batches = [await consumer.receive(100)]
    while batch := await consumer.receive(100):
        batches.append(batch)
    assert backlog() == 100
    for batch in batches:
        await consumer.ack(batch)
    assert backlog() == 0

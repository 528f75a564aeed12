"""How many messages are in flight, which max_ack_pending bounds: counted now and then, past leases that are finished."""

from __future__ import annotations

from typing import Any

from postbus import Message


async def filled(bus: Any, name: str) -> str:
    await bus.create_stream(name, partitions=1)
    await bus.publish_many(name, [Message(data=n) for n in range(2_000)])
    return name


async def test_a_lease_that_was_shortened_still_counts(bus: Any, name: str) -> None:
    # Half of them may be first deliveries: 500.
    consumer = await bus.create_consumer(await filled(bus, name), "c", order="none", max_ack_pending=1_000)
    await consumer.receive(1)
    await consumer.ack(await consumer.receive(400))
    # Here they are counted: none ends before the first lease does.
    batch = await consumer.receive(400)

    await consumer.extend(batch, ack_wait=5, shorten=True)

    assert len(await consumer.receive(500)) == 99


async def test_a_count_begins_with_what_was_in_flight_at_the_last(bus: Any, name: str, sql: Any) -> None:
    consumer = await bus.create_consumer(await filled(bus, name), "c", order="none", max_ack_pending=200)

    async def counted_from() -> Any:
        for _ in range(40):
            await consumer.ack(await consumer.receive(10))
        ((since,),) = sql.execute(
            "select p.pending_since from postbus_data.position as p"
            " join postbus_data.consumer as c on c.id = p.consumer_id and c.epoch = p.epoch"
            " where c.stream_name = %s and p.partition = 0 order by p.read_to_seq desc limit 1",
            (name,),
        ).fetchall()
        return since

    assert await counted_from() < await counted_from()

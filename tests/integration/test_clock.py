"""What was noted while the server's clock was ahead holds nothing up once it is set back."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

A_DAY = timedelta(days=1)


async def test_retries_due_behind_a_sweep_mark_in_the_future_are_redelivered(
    bus: Any, stream: str, sql: psycopg.Connection[Any]
) -> None:
    await bus.create_consumer(stream, "billing")
    await bus.publish(stream, data=1)
    billing = bus.consumer(stream, "billing")
    await bus.sweep(stream)
    marks = sql.execute(
        "update postbus_data.sweep_state set swept_to = swept_to + interval '1 day',"
        " full_sweep_at = full_sweep_at + interval '1 day'"
        " where consumer_id in (select id from postbus_data.consumer where stream_name = %s)",
        (stream,),
    )
    assert marks.rowcount == 1

    await billing.receive(ack_wait=0.1)
    await asyncio.sleep(0.15)

    assert await bus.sweep(stream) == 1
    (again,) = await billing.receive()
    assert again.attempt == 2


@pytest.mark.parametrize("by_name", [True, False], ids=["named", "found"])
async def test_tables_of_ids_that_were_begun_in_the_future_are_replaced(
    bus: Any, name: str, sql: psycopg.Connection[Any], by_name: bool
) -> None:
    await bus.create_stream(name, dedup_window=1)
    await bus.publish(name, data=1, dedup_id="x")
    stream_id = (await bus.stream_info(name)).id
    sql.execute("update postbus_data.dedup set begun_at = begun_at + %s where stream_id = %s", (A_DAY, stream_id))

    await bus.maintain(name if by_name else None)
    await asyncio.sleep(1.1)
    for _ in range(6):
        await bus.maintain(name if by_name else None)

    assert ("sealed",) in sql.execute(
        "select case when sealed_at < clock_timestamp() then 'sealed' else 'open' end"
        " from postbus_data.dedup where stream_id = %s",
        (stream_id,),
    ).fetchall()


async def test_a_segment_that_was_begun_in_the_future_is_rolled(
    bus: Any, stream: str, sql: psycopg.Connection[Any]
) -> None:
    await bus.publish(stream, data=1)
    stream_id = (await bus.stream_info(stream)).id
    sql.execute(
        "update postbus_data.segment set prepared_at = prepared_at + %s where stream_id = %s", (A_DAY, stream_id)
    )

    for _ in range(5):
        await bus.maintain(stream)

    begun: list[tuple[datetime]] = sql.execute(
        "select prepared_at from postbus_data.segment where stream_id = %s and sealed_at is null", (stream_id,)
    ).fetchall()
    assert len(begun) == 1
    assert begun[0][0] < datetime.now(tz=begun[0][0].tzinfo) + A_DAY / 2

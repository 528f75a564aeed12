"""A message with an id is published once within the stream's window, whoever publishes it and however often."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message


@pytest.fixture
async def ids(bus: Any, name: str) -> str:
    """A stream that looks for duplicates."""
    await bus.create_stream(name, partitions=2, dedup_window=60)
    return name


async def numbers(bus: Any, stream: str) -> list[Any]:
    return [message.data async for message in bus.scan(stream)]


async def test_a_second_message_with_an_id_is_not_published_and_the_answer_says_so(bus: Any, ids: str) -> None:
    first = await bus.publish(ids, data=1, key="a", dedup_id="x")
    second = await bus.publish(ids, data=2, key="b", dedup_id="x")
    other = await bus.publish(ids, data=3, dedup_id="y")
    plain = await bus.publish(ids, data=4)

    assert not first.is_duplicate
    assert second.is_duplicate
    assert second == first
    assert not other.is_duplicate
    assert plain > other
    assert await numbers(bus, ids) == [1, 3, 4]


async def test_a_batch_says_which_of_its_messages_were_duplicates(bus: Any, ids: str) -> None:
    first = await bus.publish(ids, data="old", dedup_id="b")
    answers = await bus.publish_many(
        ids,
        [
            Message(data="new a", dedup_id="a", headers={"h": "1"}),
            Message(data="again b", dedup_id="b"),
            Message(data="no id"),
            Message(data="again a", dedup_id="a"),
            Message(data="no id"),
        ],
    )

    assert [answer.is_duplicate for answer in answers] == [False, True, False, True, False]
    assert answers[1] == first
    assert answers[3] == answers[0]
    assert await numbers(bus, ids) == ["old", "new a", "no id", "no id"]
    assert [message.headers for message in await bus.read(ids)][1] == {"h": "1"}
    assert all(answer.is_duplicate for answer in await bus.publish_many(ids, [Message(data=0, dedup_id="a")]))


async def test_an_id_comes_free_with_a_rollback(bus: Any, ids: str, sql: psycopg.Connection[Any]) -> None:
    with sql.transaction(force_rollback=True):
        sql.execute("select postbus.publish(%s, null, '1', dedup_id => 'x')", (ids,))
    assert not (await bus.publish(ids, data=2, dedup_id="x")).is_duplicate
    assert await numbers(bus, ids) == [2]


async def test_of_two_at_once_the_second_waits_and_is_the_duplicate(bus: Any, ids: str, connect: Any) -> None:
    open_one = connect(autocommit=False)
    open_one.execute("select postbus.publish(%s, null, '1', dedup_id => 'x')", (ids,))
    waiting = asyncio.create_task(bus.publish(ids, data=2, dedup_id="x"))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    open_one.commit()
    assert (await waiting).is_duplicate
    assert await numbers(bus, ids) == [1]


async def test_an_id_is_free_again_after_the_window(bus: Any, name: str) -> None:
    await bus.create_stream(name, dedup_window=1)
    await bus.publish(name, data=1, dedup_id="x")
    assert (await bus.publish(name, data=2, dedup_id="x")).is_duplicate
    await asyncio.sleep(1.1)
    assert not (await bus.publish(name, data=3, dedup_id="x")).is_duplicate  # Without any maintenance.
    assert (await bus.publish(name, data=4, dedup_id="x")).is_duplicate
    assert await numbers(bus, name) == [1, 3]


async def test_old_ids_go_with_their_table(bus: Any, name: str, sql: psycopg.Connection[Any]) -> None:
    await bus.create_stream(name, dedup_window=1)
    stream_id = (await bus.stream_info(name)).id

    def tables() -> list[str]:
        found = sql.execute(
            "select c.relname from pg_class as c where c.relname ~ %s and c.relkind = 'r' order by 1",
            (f"^dedup_{stream_id}_[0-9]+$",),
        ).fetchall()
        return [row[0] for row in found]

    await bus.publish(name, data=1, dedup_id="x")
    assert tables() == [f"dedup_{stream_id}_1"]
    await asyncio.sleep(1.1)
    for _ in range(3):
        await bus.maintain(name)
    await bus.publish(name, data=2, dedup_id="y")
    assert tables() == [f"dedup_{stream_id}_1", f"dedup_{stream_id}_2"]
    assert (await bus.publish(name, data=3, dedup_id="y")).is_duplicate
    await asyncio.sleep(1.1)
    for _ in range(3):
        await bus.maintain(name)
    assert f"dedup_{stream_id}_1" not in tables()
    assert await numbers(bus, name) == [1, 2]


async def test_a_publisher_that_is_open_while_the_tables_change_is_not_passed_by(
    bus: Any, name: str, connect: Any
) -> None:
    await bus.create_stream(name, dedup_window=2)
    await bus.publish(name, data=0, dedup_id="first")
    await asyncio.sleep(2.1)
    slow = connect(autocommit=False)
    slow.execute("select postbus.publish(%s, null, '1', dedup_id => 'x')", (name,))
    for _ in range(4):
        await bus.maintain(name)  # Ids now go to another table than that of the slow one.
    waiting = asyncio.create_task(bus.publish(name, data=2, dedup_id="x"))
    await asyncio.sleep(0.2)
    slow.commit()
    assert (await waiting).is_duplicate
    assert await numbers(bus, name) == [0, 1]


async def test_batches_with_the_same_ids_in_any_order_do_not_deadlock(bus: Any, ids: str) -> None:
    names = [f"id-{n}" for n in range(50)]

    async def publish(order: list[str]) -> int:
        answers = await bus.publish_many(ids, [Message(data=name, dedup_id=name) for name in order])
        return sum(not answer.is_duplicate for answer in answers)

    new = await asyncio.gather(*(publish(names if turn % 2 else names[::-1]) for turn in range(8)))
    assert sum(new) == 50
    assert sorted(await numbers(bus, ids)) == sorted(names)


async def test_scheduled_messages_are_looked_at_when_they_are_scheduled(bus: Any, ids: str) -> None:
    assert not (await bus.publish(ids, data=1, dedup_id="x", delay=60)).is_duplicate
    assert (await bus.publish(ids, data=2, dedup_id="x", delay=60)).is_duplicate
    assert (await bus.publish(ids, data=2, dedup_id="x")).is_duplicate
    assert len(await bus.list_scheduled(ids)) == 1


async def test_ids_need_a_window(bus: Any, stream: str) -> None:
    with pytest.raises(postbus.Conflict, match="has no dedup_window"):
        await bus.publish(stream, data=1, dedup_id="x")
    await bus.alter_stream(stream, dedup_window=10)
    assert not (await bus.publish(stream, data=1, dedup_id="x")).is_duplicate
    with pytest.raises(postbus.InvalidInput, match="1 to 255"):
        await bus.publish(stream, data=1, dedup_id="")
    await bus.alter_stream(stream, unset=("dedup_window",))
    with pytest.raises(postbus.Conflict, match="has no dedup_window"):
        await bus.publish(stream, data=1, dedup_id="x")
    with pytest.raises(postbus.InvalidInput, match="dedup_window"):
        await bus.alter_stream(stream, dedup_window=0)
    await bus.drop_stream(stream)


async def test_ids_are_known_while_a_register_is_ahead_of_the_tables(
    bus: Any, ids: str, sql: psycopg.Connection[Any]
) -> None:
    """As a dump may have it."""
    first = await bus.publish(ids, data=1, dedup_id="x")
    register = await put_ahead(bus, ids, sql)

    assert await bus.publish(ids, data=2, dedup_id="x") == first
    assert not (await bus.publish(ids, data=3, dedup_id="y")).is_duplicate

    await bus.maintain()
    assert sql.execute("select pg_sequence_last_value(%s::regclass)", (register,)).fetchone() == (1,)
    assert (await bus.publish(ids, data=4, dedup_id="y")).is_duplicate
    assert await numbers(bus, ids) == [1, 3]


async def test_maintenance_prepares_a_table_of_ids_where_none_is_left(
    bus: Any, ids: str, sql: psycopg.Connection[Any]
) -> None:
    """A register that a crash had left ahead had maintenance drop them as old ones."""
    await put_ahead(bus, ids, sql)
    stream_id = (await bus.stream_info(ids)).id
    sql.execute(f"drop table postbus_data.dedup_{stream_id}_1".encode())
    sql.execute("delete from postbus_data.dedup where stream_id = %s", (stream_id,))

    with sql.transaction():
        for _ in range(2):
            sql.execute("select postbus.maintain(%s)", (ids,))
    await bus.maintain()

    assert not (await bus.publish(ids, data=1, dedup_id="x")).is_duplicate
    assert (await bus.publish(ids, data=2, dedup_id="x")).is_duplicate


async def put_ahead(bus: Any, stream: str, sql: psycopg.Connection[Any]) -> str:
    """Let a stream's register name a table of ids that does not exist."""
    register = f"postbus_data.dedup_{(await bus.stream_info(stream)).id}"
    sql.execute("select setval(%s::regclass, 33)", (register,))
    return register

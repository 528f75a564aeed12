"""A stream's own publishers, which the library uses from the second call on, do what postbus.publish and publish_many do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import postbus
from postbus import Message

Publish = Callable[..., Awaitable[None]]


@pytest.fixture(params=["publish", "publish_many"])
def function(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def publish(bus: Any, function: str) -> Publish:
    """Publishes one message, alone or as a batch."""

    async def alone(stream: str, **message: Any) -> None:
        await bus.publish(stream, **message)

    async def as_batch(stream: str, **message: Any) -> None:
        await bus.publish_many(stream, [Message(**message)])

    return alone if function == "publish" else as_batch


@pytest.fixture(params=["json", "text", "bytes"])
async def warm(request: pytest.FixtureRequest, bus: Any, name: str) -> tuple[Any, str]:
    """A stream to which one message was published, and what else it may hold."""
    await bus.create_stream(name, data_type=request.param, max_message_bytes=20, segment_bytes=65536)
    data = {"json": [1], "text": "text", "bytes": b"\x00"}[request.param]
    await bus.publish(name, data=data)
    return data, name


async def test_key_partition_headers_and_data_are_the_same(bus: Any, warm: Any, publish: Publish) -> None:
    data, stream = warm
    await publish(stream, key="orders.a", data=data)
    await publish(stream, key="orders.a", data=data, headers={"a": "b"})
    await publish(stream, data=data)

    found = list(await bus.read(stream))
    assert [m.data for m in found] == [data] * 4
    assert [m.key for m in found] == [None, "orders.a", "orders.a", None]
    assert [m.headers for m in found] == [None, None, {"a": "b"}, None]
    assert found[1].partition == found[2].partition == postbus.partition_of("orders.a", 8)


async def test_the_streams_own_function_refuses_messages_with_the_same_words(
    bus: Any, warm: Any, publish: Publish
) -> None:
    data, stream = warm
    with pytest.raises(postbus.InvalidInput, match='is not allowed: its key "a b" has a space'):
        await publish(stream, key="a b", data=data)
    with pytest.raises(postbus.InvalidInput, match="256 characters"):
        await publish(stream, key="x" * 256, data=data)
    with pytest.raises(postbus.TooLarge, match="the stream allows 20"):
        await publish(stream, data=b"x" * 21 if isinstance(data, bytes) else "x" * 21)
    assert len(await bus.read(stream)) == 1


async def test_the_streams_own_function_follows_changed_limits_and_new_segments(
    bus: Any, warm: Any, publish: Publish, sql: Any
) -> None:
    data, stream = warm
    await bus.alter_stream(stream, max_message_bytes=5)
    with pytest.raises(postbus.TooLarge, match="the stream allows 5"):
        await publish(stream, data=b"123456" if isinstance(data, bytes) else "123456")
    sql.execute("update postbus_data.stream set roll_due = true where name = %s", (stream,))
    await bus.maintain(stream)
    await publish(stream, data=data)

    info = await bus.stream_info(stream)
    assert sql.execute(f"select count(*) from postbus_data.log_{info.id}_2").fetchone() == (1,)
    assert [m.data for m in await bus.read(stream)] == [data, data]


async def test_a_publisher_written_for_an_older_segment_writes_to_the_current_one(
    bus: Any, warm: Any, publish: Publish, function: str, sql: Any
) -> None:
    """Between the move of the register and the new function, or in a session that has not noticed it yet."""
    data, stream = warm
    info = await bus.stream_info(stream)
    old = sql.execute(f"select pg_get_functiondef('postbus_data.{function}_{info.id}'::regproc)").fetchone()[0]
    sql.execute("update postbus_data.stream set roll_due = true where name = %s", (stream,))
    await bus.maintain(stream)
    sql.execute(old.encode())
    await publish(stream, data=data)

    assert sql.execute(f"select count(*) from postbus_data.log_{info.id}_2").fetchone() == (1,)


async def test_a_dropped_stream_is_noticed(bus: Any, warm: Any, publish: Publish, url: str) -> None:
    data, stream = warm
    await publish(stream, data=data)
    async with await postbus.connect_async(url) as other:
        await other.drop_stream(stream)
        with pytest.raises(postbus.NotFound, match="does not exist"):
            await publish(stream, data=data)
        await other.create_stream(stream, data_type="text")
    await publish(stream, data="new")
    await publish(stream, data="newer")
    assert [m.data for m in await bus.read(stream)] == ["new", "newer"]


async def test_the_streams_own_function_holds_the_horizon(
    bus: Any, warm: Any, publish: Publish, function: str, connect: Any
) -> None:
    data, stream = warm
    info = await bus.stream_info(stream)
    late = connect(autocommit=False)
    content: Any = b"1" if info.data_type == "bytes" else "1"
    arguments = (None, content) if function == "publish" else ([None], [content])
    late.execute(
        f"select postbus_data.{function}_{info.id}(%s::text{'[]' * (function != 'publish')}, %s, null)", arguments
    )
    await publish(stream, data=data)

    assert len(await bus.read(stream)) == 1
    late.commit()
    assert len(await bus.read(stream)) == 3


async def test_a_batch_keeps_its_order_with_and_without_keys(bus: Any, warm: Any) -> None:
    data, stream = warm
    keys = [None, "b", "a.c", None, "b"]
    seqs = await bus.publish_many(stream, [Message(key=key, data=data) for key in keys])
    more = await bus.publish_many(stream, [Message(data=data) for _ in range(3)])

    found = list(await bus.read(stream))[1:]
    assert [m.seq for m in found] == [*seqs, *more] == sorted([*seqs, *more])
    assert [m.key for m in found] == [*keys, None, None, None]


@pytest.mark.parametrize("key", ["", "a..b", ".a", "a.", "a b"])
async def test_a_bad_key_among_good_ones_is_refused_by_its_place(bus: Any, warm: Any, key: str) -> None:
    data, stream = warm
    with pytest.raises(postbus.InvalidInput, match="message 2 is not allowed"):
        await bus.publish_many(stream, [Message(key="a", data=data), Message(key=key, data=data), Message(data=data)])
    assert len(await bus.read(stream)) == 1

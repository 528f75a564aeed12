from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import postbus

pytestmark = pytest.mark.newest_server

_VALUES: list[Any] = [
    {"quantity": 4, "lines": [1, 2.5, None, True]},
    "a string",
    "",
    "ünïcode ✓ 𝄞",
    12345678901234567890123,
    -(2**63),
    0.1,
    1e300,
    False,
    None,
    [],
    {},
    {"encoding": "base64", "data": "x"},
]


async def test_data_comes_back_as_it_was_sent(bus: Any, stream: str) -> None:
    await bus.publish_many(stream, [postbus.Message(key="k", data=value) for value in _VALUES])

    found = [message.data for message in await bus.read(stream)]

    assert found == _VALUES
    assert [type(value) for value in found] == [type(value) for value in _VALUES]


@pytest.mark.parametrize(
    ("data_type", "data"), [("text", 'not "json" {\n'), ("bytes", bytes(range(256))), ("bytes", b"")]
)
async def test_text_and_bytes_come_back_as_they_were_sent(bus: Any, name: str, data_type: str, data: Any) -> None:
    await bus.create_stream(name, data_type=data_type)
    billing = await bus.create_consumer(name, "billing")

    await bus.publish(name, key="k", data=data)

    assert [message.data for message in await bus.read(name)] == [data]
    assert [delivery.data for delivery in await billing.receive()] == [data]


async def test_a_message_has_its_key_headers_seq_and_time(bus: Any, stream: str) -> None:
    seq = await bus.publish(stream, key="orders.1", data=1, headers={"source": "shop", "ü": ""})
    other = await bus.publish(stream, data=2)

    first, second = await bus.read(stream)

    assert (first.seq, first.key, first.headers) == (seq, "orders.1", {"source": "shop", "ü": ""})
    assert (second.seq, second.key, second.headers) == (other, None, None)
    assert first.partition == postbus.partition_of("orders.1", 4)
    assert abs(datetime.now(UTC) - first.published_at) < timedelta(minutes=1)


async def test_a_batch_is_published_in_order_all_or_none(bus: Any, stream: str) -> None:
    seqs = await bus.publish_many(stream, [postbus.Message(key="k", data=number) for number in range(5)])

    assert seqs == sorted(seqs)
    assert [message.data for message in await bus.read(stream)] == list(range(5))
    assert await bus.publish_many(stream, []) == []
    with pytest.raises(postbus.InvalidInput, match="message 2"):
        await bus.publish_many(stream, [postbus.Message(data=1), postbus.Message(data=object())])
    with pytest.raises(postbus.InvalidInput):
        await bus.publish_many(stream, [postbus.Message(data=1), postbus.Message(key="no..good", data=2)])
    with pytest.raises(postbus.TooLarge):
        await bus.publish_many(stream, [postbus.Message(data=1)] * 10_001)
    assert len(await bus.read(stream)) == 5


async def test_message_errors_have_their_own_classes(bus: Any, name: str) -> None:
    await bus.create_stream(name, max_message_bytes=10)
    await bus.create_stream(f"{name}-text", data_type="text")
    await bus.create_stream(f"{name}-bytes", data_type="bytes")

    with pytest.raises(postbus.TooLarge):
        await bus.publish(name, data="more than ten bytes")
    with pytest.raises(postbus.NotFound, match="does not exist"):
        await bus.publish("nobody-made-this", data=1)
    for stream, data in ((name, b"bytes"), (name, float("nan")), (f"{name}-text", {}), (f"{name}-bytes", "text")):
        with pytest.raises(postbus.InvalidInput):
            await bus.publish(stream, data=data)
    for message in ({"headers": {"a": 1}}, {"key": ""}, {"key": "a\x00"}, {"headers": {"a": "\x00"}}):
        with pytest.raises(postbus.InvalidInput):
            await bus.publish(name, data=1, **message)


async def test_a_far_too_large_message_is_refused_with_the_reason(bus: Any, stream: str) -> None:
    with pytest.raises(postbus.TooLarge):
        await bus.publish(stream, data="x" * (24 * 1024 * 1024))
    assert await bus.publish(stream, data="small")


async def test_a_full_stream_refuses(bus: Any, name: str) -> None:
    await bus.create_stream(name, max_messages=1, when_full="refuse")
    await bus.publish_many(name, [postbus.Message(data=number) for number in range(3)])
    await bus.maintain(name)

    with pytest.raises(postbus.StreamFull):
        await bus.publish(name, data=1)


async def test_reading_takes_a_range_a_key_and_pages(bus: Any, stream: str) -> None:
    seqs = await bus.publish_many(
        stream, [postbus.Message(key=f"orders.{number % 2}", data=number) for number in range(6)]
    )

    async def read(**arguments: Any) -> list[int]:
        return [message.data for message in await bus.read(stream, **arguments)]

    assert await read(from_seq=seqs[1], to_seq=seqs[3]) == [1, 2, 3]
    assert await read(key="orders.1") == [1, 3, 5]
    assert await read(key_pattern="*.0") == [0, 2, 4]
    assert await read(backwards=True, max_messages=2) == [5, 4]
    assert await read(from_time=datetime.now(UTC) + timedelta(hours=1)) == []
    assert len(await read(to_time=datetime.now(UTC) + timedelta(hours=1))) == 6
    page = await bus.read(stream, max_messages=4)
    assert await read(resume=page.resume) == [4, 5]
    assert [message.data async for message in bus.scan(stream, page_size=4)] == list(range(6))
    with pytest.raises(postbus.InvalidInput):
        await read(key_pattern="not..allowed")
    with pytest.raises(postbus.InvalidInput):
        await read(max_messages=0)


async def test_scheduled_messages_wait_are_listed_moved_and_cancelled(bus: Any, stream: str) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    first = await bus.publish(stream, key="a.b", data={"n": 1}, headers={"h": "1"}, delay=3600, ttl=60)
    second, third = await bus.publish_many(
        stream, [postbus.Message(data=2), postbus.Message(data=3)], deliver_at=later + timedelta(hours=1)
    )

    waiting = await bus.list_scheduled(stream)
    assert [each.id for each in waiting] == [first, second, third]
    assert (waiting[0].key, waiting[0].data, waiting[0].headers) == ("a.b", {"n": 1}, {"h": "1"})
    assert waiting[0].ttl == timedelta(minutes=1)
    assert [each.id for each in await bus.list_scheduled(stream, after=waiting[0])] == [second, third]
    assert [each.id for each in await bus.list_scheduled(stream, key_pattern="a.>")] == [first]

    assert await bus.reschedule(stream, third, later - timedelta(minutes=30)) == 1
    assert [each.id for each in await bus.list_scheduled(stream)] == [third, first, second]
    assert await bus.cancel(stream, [first, second, third]) == 3
    assert await bus.cancel(stream, first) == 0
    assert await bus.cancel(stream, []) == 0
    assert not await bus.read(stream)


async def test_a_bus_adds_its_own_headers_to_what_it_publishes(bus: Any, stream: str, url: str, api: Any) -> None:
    where = url if bus.url.startswith("postgres") else api.url
    async with await postbus.connect_async(where, headers={"program": "billing", "version": "1"}) as other:
        await other.publish(stream, data=1)
        await other.publish(stream, data=2, headers={"version": "2", "x": "y"})
        await other.publish_many(stream, [postbus.Message(data=3, headers={"version": "3"}), postbus.Message(data=4)])
        queue = await other.create_queue(f"{stream}-q", exist_ok=True)
        await queue.publish(5)
        found = [message.headers for message in await other.read(f"{stream}-q")]
    found += [message.headers for message in sorted(await bus.read(stream), key=lambda each: each.data)]

    own = {"program": "billing", "version": "1"}
    assert found == [own, own, {**own, "version": "2", "x": "y"}, {**own, "version": "3"}, own]
    with pytest.raises(postbus.InvalidInput, match="header"):
        await postbus.connect_async(where, headers={"a": 1})  # type: ignore[dict-item]


async def test_publishing_answers_whether_a_message_is_a_duplicate_also_without_ids(bus: Any, stream: str) -> None:
    seq = await bus.publish(stream, data=1)
    seqs = await bus.publish_many(stream, [postbus.Message(data=2)])

    assert [type(each) for each in (seq, *seqs)] == [postbus.Seq] * 2
    assert not any(each.is_duplicate for each in (seq, *seqs))

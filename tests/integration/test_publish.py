from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message


async def test_a_message_comes_back_as_it_was_published(bus: Any, stream: str) -> None:
    data = {"quantity": 4, "text": "é\u0000\U0001f600", "nothing": None, "list": [1, 2.5, True]}
    seq = await bus.publish(stream, key="orders.cus_a.1", data=data, headers={"trace": "abc", "ключ": "значение"})

    (message,) = await bus.read(stream)
    assert (message.key, message.data, message.seq) == ("orders.cus_a.1", data, seq)
    assert message.headers == {"trace": "abc", "ключ": "значение"}
    assert message.published_at.tzinfo is not None


@pytest.mark.parametrize("data", [None, True, 0, 1.5, "", "text", [], {}, 2**80, "\x00", [[{"a": None}]]])
async def test_any_json_value_is_data(bus: Any, stream: str, data: Any) -> None:
    await bus.publish(stream, data=data)
    await bus.publish_many(stream, [Message(data=data)])

    assert [m.data for m in await bus.read(stream)] == [data, data]


async def test_json_is_stored_to_the_letter(bus: Any, stream: str, sql: Any) -> None:
    text = '{"b":1,  "a": 2, "b": 3.10}'
    sql.execute("select postbus.publish(%s, data => %s)", (stream, text))

    assert sql.execute("select data from postbus.read(%s)", (stream,)).fetchone() == (text,)


@pytest.mark.parametrize("data", [b"", b"\x00\xff", bytes(range(256)) * 100])
async def test_a_bytes_stream_takes_any_bytes(bus: Any, name: str, data: bytes) -> None:
    await bus.create_stream(name, data_type="bytes")
    await bus.publish(name, data=data)
    await bus.publish_many(name, [Message(data=data), Message(key="k", data=bytearray(data))])

    assert [m.data for m in await bus.read(name)] == [data] * 3


@pytest.mark.parametrize("data", ["", "plain", '{"not": "parsed"}', "é\n\t"])
async def test_a_text_stream_takes_any_text(bus: Any, name: str, data: str) -> None:
    await bus.create_stream(name, data_type="text")
    await bus.publish(name, data=data)
    await bus.publish_many(name, [Message(data=data)])

    assert [m.data for m in await bus.read(name)] == [data, data]


async def test_a_batch_keeps_its_order_and_returns_seqs_in_it(bus: Any, stream: str) -> None:
    seqs = await bus.publish_many(stream, [Message(key=f"k{n % 7}", data=n) for n in range(1000)])

    assert seqs == sorted(set(seqs))
    found = [(m.seq, m.data) async for m in bus.scan(stream)]
    assert found == list(zip(seqs, range(1000), strict=True))


async def test_the_same_key_twice_in_a_batch_is_fine(bus: Any, stream: str) -> None:
    await bus.publish_many(stream, [Message(key="k", data=1), Message(key="k", data=2)])

    assert [m.data for m in await bus.read(stream, key="k")] == [1, 2]


async def test_publishing_nothing_does_nothing(bus: Any, stream: str) -> None:
    assert await bus.publish_many(stream, []) == []
    assert list(await bus.read(stream)) == []


async def test_publishing_nothing_to_an_unknown_stream_is_an_error(bus: Any) -> None:
    with pytest.raises(postbus.NotFound):
        await bus.publish_many("no-such", [])


async def test_seqs_grow_over_single_messages_and_batches(bus: Any, stream: str) -> None:
    first = await bus.publish(stream, data=1)
    batch = await bus.publish_many(stream, [Message(data=2), Message(data=3)])
    last = await bus.publish(stream, data=4)

    assert first < batch[0] < batch[1] < last


async def test_the_first_message_has_seq_1(bus: Any, stream: str) -> None:
    assert await bus.publish(stream, data=1) == 1


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "is empty"),
        ("a b", "space"),
        ("a\tb", "control character"),
        ("a.*", '"\\*"'),
        ("a.>", '">"'),
        (".a", "empty token"),
        ("a.", "empty token"),
        ("a..b", "empty token"),
        (".", "empty token"),
        ("x" * 256, "256 characters, and 255 are allowed"),
        ("a\x7fb", "control character"),
        ("a\x00b", "NUL"),
    ],
)
async def test_an_invalid_key_is_refused_with_its_place_and_the_reason(
    bus: Any, stream: str, key: str, reason: str
) -> None:
    with pytest.raises(postbus.InvalidInput, match=f"message is not allowed: .*{reason}"):
        await bus.publish(stream, key=key, data=1)
    with pytest.raises(postbus.InvalidInput, match=f"message 2 is not allowed: .*{reason}"):
        await bus.publish_many(stream, [Message(key="ok", data=1), Message(key=key, data=2), Message(key="ok", data=3)])

    assert list(await bus.read(stream)) == []


@pytest.mark.parametrize(
    "key", ["a", "x" * 255, "ключ.日本.🙂", "a-b:c/d@e,f;g'h\"i\\j%k", ".".join("abcdefghijklmnopq")]
)
async def test_any_other_key_is_allowed(bus: Any, stream: str, key: str) -> None:
    await bus.publish(stream, key=key, data=1)
    await bus.publish_many(stream, [Message(key=key, data=2)])

    assert [(m.key, m.data) for m in await bus.read(stream, key=key)] == [(key, 1), (key, 2)]


async def test_a_key_always_goes_to_the_partition_that_python_computes(bus: Any, stream: str) -> None:
    keys = [f"orders.cus_{n}.é" for n in range(100)]
    await bus.publish_many(stream, [Message(key=key, data=0) for key in keys])
    for key in keys:
        await bus.publish(stream, key=key, data=0)

    async for message in bus.scan(stream):
        assert message.partition == postbus.partition_of(message.key, 4)


async def test_sql_computes_the_same_partition_as_python(sql: Any) -> None:
    for key in ("orders.cus_a.1", "a", "ключ.日本", "x" * 255):
        for partitions in (1, 2, 7, 8, 1000, 1024):
            found = sql.execute("select postbus.partition_of(%s, %s)", (key, partitions)).fetchone()
            assert found == (postbus.partition_of(key, partitions),)


async def test_messages_without_a_key_spread_over_the_partitions(bus: Any, stream: str) -> None:
    await bus.publish_many(stream, [Message(data=n) for n in range(100)])
    for n in range(20):
        await bus.publish(stream, data=n)

    assert {m.partition async for m in bus.scan(stream)} == {0, 1, 2, 3}


async def test_data_over_the_limit_is_refused_with_its_place(bus: Any, name: str) -> None:
    await bus.create_stream(name, max_message_bytes=100)
    await bus.publish(name, data="x" * 98)

    with pytest.raises(postbus.TooLarge, match="message has 101 bytes of data, and the stream allows 100"):
        await bus.publish(name, data="x" * 99)
    with pytest.raises(postbus.TooLarge, match="message 2 has 101 bytes"):
        await bus.publish_many(name, [Message(data=1), Message(data="x" * 99)])
    assert len(await bus.read(name)) == 1


async def test_a_message_of_8_mib_fits_the_default(bus: Any, name: str) -> None:
    await bus.create_stream(name, data_type="bytes")
    await bus.publish(name, data=b"\x01" * (8 * 1024 * 1024))

    assert len((await bus.read(name))[0].data) == 8 * 1024 * 1024
    with pytest.raises(postbus.TooLarge):
        await bus.publish(name, data=b"\x01" * (8 * 1024 * 1024 + 1))


async def test_a_batch_has_at_most_10000_messages(bus: Any, stream: str) -> None:
    batch = [Message(data=n) for n in range(10_000)]
    assert len(await bus.publish_many(stream, batch)) == 10_000

    with pytest.raises(postbus.TooLarge, match="10001 messages is too large: at most 10000 are allowed"):
        await bus.publish_many(stream, [*batch, Message(data=0)])


async def test_data_that_does_not_fit_the_type_is_refused_with_its_place(bus: Any, stream: str) -> None:
    with pytest.raises(postbus.InvalidInput, match="message 3 is not allowed: its data is not JSON"):
        await bus.publish_many(stream, [Message(data=1), Message(data=2), Message(data=object())])
    assert list(await bus.read(stream)) == []


@pytest.mark.parametrize(
    ("headers", "reason"), [("[1]", "not a JSON object"), ('{"a": 1}', "not a string"), ('"x"', "not a JSON object")]
)
def test_sql_refuses_headers_that_are_not_strings(sql: Any, headers: str, reason: str) -> None:
    sql.execute(
        "select postbus.create_stream('headers-checked') where not exists "
        "(select from postbus_data.stream where name = 'headers-checked')"
    )
    with pytest.raises(psycopg.Error, match=reason):
        sql.execute("select postbus.publish('headers-checked', data => '1', headers => %s::jsonb)", (headers,))
    with pytest.raises(psycopg.Error, match=f"message 1 .*{reason}"):
        sql.execute(
            "select postbus.publish_many('headers-checked', data => '{1}', headers => array[%s::jsonb])", (headers,)
        )


async def test_sql_errors_name_the_message_that_is_not_json(bus: Any, stream: str, sql: Any) -> None:
    with pytest.raises(psycopg.Error, match="message 2 is not valid JSON"):
        sql.execute("select postbus.publish_many(%s, data => array['1', 'x', '{'])", (stream,))
    with pytest.raises(psycopg.Error, match="message is not valid JSON"):
        sql.execute("select postbus.publish(%s, data => 'x')", (stream,))
    with pytest.raises(psycopg.Error, match="its data is missing"):
        sql.execute("select postbus.publish(%s, 'k', null)", (stream,))
    with pytest.raises(psycopg.Error, match=r"message 2 .*its data is missing"):
        sql.execute("select postbus.publish_many(%s, data => array['1', null])", (stream,))
    assert list(await bus.read(stream)) == []


@pytest.mark.parametrize(
    "arguments",
    [
        "keys => array['a'], data => array['1', '2']",
        "data => array['1'], headers => array[null, null]::jsonb[]",
        "data => array['1'], bytes => array['x'::bytea]",
        "data => array[array['1', '2'], array['3', '4']]",
    ],
)
async def test_arrays_that_do_not_run_side_by_side_are_refused(bus: Any, stream: str, sql: Any, arguments: str) -> None:
    with pytest.raises(psycopg.Error, match="do not run side by side"):
        sql.execute(f"select postbus.publish_many('{stream}', {arguments})")


async def test_bytes_in_a_json_stream_and_text_in_a_bytes_stream_are_refused(bus: Any, stream: str, sql: Any) -> None:
    with pytest.raises(psycopg.Error, match="holds json"):
        sql.execute("select postbus.publish(%s, bytes => 'x')", (stream,))
    with pytest.raises(psycopg.Error, match="holds json"):
        sql.execute("select postbus.publish_many(%s, bytes => array['x'::bytea])", (stream,))
    await bus.create_stream(f"{stream}-b", data_type="bytes")
    with pytest.raises(psycopg.Error, match="holds bytes"):
        sql.execute("select postbus.publish(%s, data => 'x')", (f"{stream}-b",))
    with pytest.raises(psycopg.Error, match="holds bytes"):
        sql.execute("select postbus.publish_many(%s, data => array['x'])", (f"{stream}-b",))


async def test_eight_publishers_at_once_lose_and_double_nothing(bus: Any, stream: str) -> None:
    async def publish(publisher: int) -> list[int]:
        seqs: list[int] = []
        for n in range(25):
            seqs += await bus.publish_many(
                stream, [Message(key=f"p{publisher}", data=[publisher, 10 * n + i]) for i in range(10)]
            )
        return seqs

    returned = await asyncio.gather(*(publish(publisher) for publisher in range(8)))

    found = [m async for m in bus.scan(stream)]
    assert sorted(seq for seqs in returned for seq in seqs) == [m.seq for m in found]
    for publisher in range(8):
        assert [m.data[1] for m in found if m.data[0] == publisher] == list(range(250))


async def test_two_streams_do_not_touch_each_other(bus: Any, stream: str, name: str) -> None:
    other = f"{name}-2"
    await bus.create_stream(other)
    await bus.publish(stream, key="k", data="one")
    await bus.publish(other, key="k", data="two")

    assert [m.data for m in await bus.read(stream)] == ["one"]
    assert [m.data for m in await bus.read(other)] == ["two"]
    assert (await bus.read(other))[0].seq == 1


@pytest.mark.parametrize("many", [False, True], ids=["publish", "publish_many"])
async def test_an_error_at_the_commit_is_raised_and_nothing_is_published(
    bus: Any, stream: str, sql: psycopg.Connection[Any], many: bool
) -> None:
    log = f"postbus_data.log_{(await bus.stream_info(stream)).id}_1"
    sql.execute(
        f"""create function refuse() returns trigger language plpgsql as 'begin raise exception ''not today''; end';
        create constraint trigger refuse after insert on {log} deferrable initially deferred
        for each row execute function refuse()""".encode()
    )

    with pytest.raises(postbus.Error, match="not today"):
        await (bus.publish_many(stream, [postbus.Message(data=1)]) if many else bus.publish(stream, data=1))

    sql.execute("drop function refuse cascade")
    await bus.publish(stream, data=2)
    assert [message.data for message in await bus.read(stream)] == [2]


async def test_times_decimals_and_dataclasses_are_data(bus: Any, stream: str, sql: Any) -> None:
    @dataclass
    class Invoice:
        at: datetime
        amount: Decimal

    invoice = Invoice(datetime(2026, 3, 1, 12, tzinfo=UTC), Decimal("12345678901234567890.10"))
    await bus.publish(stream, data=invoice)
    await bus.publish_many(stream, [Message(data={"invoice": invoice, "note": None})])

    stored = '{"at":"2026-03-01T12:00:00+00:00","amount":12345678901234567890.10}'
    found = [data for (data,) in sql.execute("select data from postbus.read(%s)", (stream,))]
    assert found == [stored, f'{{"invoice":{stored},"note":null}}']


async def test_data_that_is_not_json_is_refused_with_its_type_and_place(bus: Any, stream: str) -> None:
    with pytest.raises(postbus.InvalidInput, match=r"data\.tags is of type set") as caught:
        await bus.publish(stream, data={"tags": {"a"}})
    assert caught.value.hint is not None
    with pytest.raises(postbus.InvalidInput, match=r"message 2 is not allowed: .*data\.tags is of type set"):
        await bus.publish_many(stream, [Message(data=1), Message(data={"tags": {"a"}})])

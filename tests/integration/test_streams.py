from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Literal

import postbus


async def test_a_new_stream_has_the_documented_defaults(bus: Any, name: str) -> None:
    await bus.create_stream(name)

    info = await bus.stream_info(name)
    assert (info.name, info.partitions, info.data_type) == (name, 8, "json")
    assert info.max_message_bytes == 8 * 1024 * 1024
    assert (info.start_seq, info.last_seq, info.segment_count) == (0, 0, 1)


@pytest.mark.parametrize("partitions", [1, 1024])
async def test_a_stream_has_1_to_1024_partitions(bus: Any, name: str, partitions: int) -> None:
    await bus.create_stream(name, partitions=partitions)
    await bus.publish_many(name, [postbus.Message(key=f"k{n}", data=n) for n in range(50)])

    assert [m.data async for m in bus.scan(name)] == list(range(50))


@pytest.mark.parametrize(
    "settings",
    [
        {"partitions": 0},
        {"partitions": 1025},
        {"max_message_bytes": 0},
        {"segment_bytes": 1},
        {"segment_age": 0},
        {"data_type": "xml"},
        {"partitions": None},
    ],
)
async def test_an_impossible_setting_is_refused_and_nothing_is_made(
    bus: Any, name: str, settings: dict[str, Any]
) -> None:
    with pytest.raises(postbus.InvalidInput):
        await bus.create_stream(name, **settings)

    with pytest.raises(postbus.NotFound):
        await bus.stream_info(name)


async def test_the_error_for_a_setting_names_the_allowed_range(bus: Any, name: str) -> None:
    with pytest.raises(postbus.InvalidInput, match="partitions = 1025 is not between 1 and 1024"):
        await bus.create_stream(name, partitions=1025)


@pytest.mark.parametrize("bad", ["", "a b", "a.b", "é", "x" * 64, 'quote"d', "semi;colon", "new\nline", "ok\n"])
async def test_an_invalid_name_is_refused(bus: Any, bad: str) -> None:
    with pytest.raises(postbus.InvalidInput, match="stream name"):
        await bus.create_stream(bad)


async def test_names_differ_by_case_and_may_be_63_long(bus: Any, name: str) -> None:
    long = (name + "x" * 63)[:63]
    for each in (long, name.upper(), name.capitalize()):
        await bus.create_stream(each)
        await bus.publish(each, data=each)
    assert [(await bus.read(each))[0].data for each in (long, name.upper())] == [long, name.upper()]


async def test_creating_a_stream_twice_is_a_conflict(bus: Any, stream: str) -> None:
    with pytest.raises(postbus.Conflict, match="exists"):
        await bus.create_stream(stream)


async def test_altering_changes_only_the_given_settings(bus: Any, stream: str) -> None:
    before = await bus.stream_info(stream)
    await bus.alter_stream(stream, max_message_bytes=10, segment_age=timedelta(hours=2))

    after = await bus.stream_info(stream)
    assert (after.max_message_bytes, after.segment_age) == (10, timedelta(hours=2))
    assert after.segment_bytes == before.segment_bytes
    with pytest.raises(postbus.TooLarge):
        await bus.publish(stream, data="01234567890")


async def test_a_dropped_stream_is_gone_and_its_name_is_free(bus: Any, stream: str, sql: Any) -> None:
    old = await bus.stream_info(stream)
    await bus.publish(stream, data=1)
    await bus.drop_stream(stream)

    with pytest.raises(postbus.NotFound):
        await bus.publish(stream, data=2)
    left = sql.execute("select count(*) from pg_class where relname ~ %s", (f"_{old.id}(_|$)",)).fetchone()
    assert left == (0,)
    await bus.create_stream(stream)
    assert (await bus.stream_info(stream)).id != old.id
    assert list(await bus.read(stream)) == []


async def test_a_stream_recreated_with_another_type_is_noticed(bus: Any, stream: str, url: str) -> None:
    await bus.publish(stream, data="json string")
    async with await postbus.connect_async(url) as other:
        await other.drop_stream(stream)
        await other.create_stream(stream, data_type="text")

    await bus.publish(stream, data="plain")
    assert [m.data async for m in bus.scan(stream)] == ["plain"]


async def test_streams_are_listed_by_name_in_pages(fresh_url: str) -> None:
    async with await postbus.connect_async(fresh_url) as bus:
        names = [f"s{number:03d}" for number in range(230)]
        for each in names:
            await bus.create_stream(each, partitions=1)
        assert [info.name for info in await bus.list_streams()] == names


@pytest.mark.parametrize(
    "call", ["stream_info", "drop_stream", "alter_stream", "read", "horizon", "horizon_holders", "purge"]
)
async def test_an_unknown_stream_is_an_error_with_a_hint(bus: Any, call: str) -> None:
    with pytest.raises(postbus.NotFound, match='stream "no-such" does not exist') as caught:
        await getattr(bus, call)("no-such")
    assert caught.value.hint is not None
    assert "create" in caught.value.hint


async def test_a_receive_that_meets_the_drop_of_its_stream_says_that_there_is_none(
    bus: Any, stream: str, sql: Any
) -> None:
    await bus.create_consumer(stream, "c")
    with pytest.raises(psycopg.Error, match="does not exist") as caught, sql.transaction():
        sql.execute(
            SQL(
                """
                do $$
                declare
                    reader postbus_data.consumer;
                begin
                    select c.* into reader from postbus_data.consumer as c where c.stream_name = {0} and c.name = 'c';
                    perform postbus.drop_stream({0});
                    perform postbus_data.claim_batches(reader, 10, null, 'json', null);
                end
                $$
                """
            ).format(Literal(stream))
        )
    assert caught.value.sqlstate == "PB404"

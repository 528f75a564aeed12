from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import postbus
from postbus import Message


async def fill(bus: Any, stream: str, count: int = 100) -> list[Any]:
    for start in range(0, count, 10):
        await bus.publish_many(
            stream, [Message(key=f"orders.cus_{n % 5}.{n}", data=n) for n in range(start, min(start + 10, count))]
        )
    return [message async for message in bus.scan(stream)]


async def test_a_range_of_seqs_is_inclusive(bus: Any, stream: str) -> None:
    await fill(bus, stream, 20)

    assert [m.seq for m in await bus.read(stream, from_seq=5, to_seq=8)] == [5, 6, 7, 8]
    assert [m.seq for m in await bus.read(stream, from_seq=5, to_seq=8, backwards=True)] == [8, 7, 6, 5]
    assert list(await bus.read(stream, from_seq=8, to_seq=5)) == []
    assert list(await bus.read(stream, from_seq=21)) == []


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("size", [1, 7, 100])
async def test_pages_join_without_gap_or_overlap(bus: Any, stream: str, size: int, backwards: bool) -> None:
    everything = await fill(bus, stream, 50)
    pages = []
    resume = None
    while True:
        page = await bus.read(stream, max_messages=size, backwards=backwards, resume=resume)
        if page.resume is None:
            break
        pages += [m.seq for m in page]
        resume = page.resume

    expected = [m.seq for m in everything]
    assert pages == (expected[::-1] if backwards else expected)


async def test_a_resume_token_at_the_end_reads_later_messages(bus: Any, stream: str) -> None:
    await fill(bus, stream, 5)
    page = await bus.read(stream)
    assert list(await bus.read(stream, resume=page.resume)) == []

    await bus.publish(stream, data="new")
    assert [m.data for m in await bus.read(stream, resume=page.resume)] == ["new"]


async def test_a_token_works_for_a_filter_too_when_nothing_matches(bus: Any, stream: str) -> None:
    await fill(bus, stream, 5)
    page = await bus.read(stream, key="no.such.key")
    assert list(page) == []
    assert page.resume is not None

    again = await bus.read(stream, key="no.such.key", resume=page.resume)
    assert again.resume is None


async def test_only_messages_of_a_key(bus: Any, stream: str) -> None:
    await bus.publish_many(stream, [Message(key=f"k{n % 3}", data=n) for n in range(9)])

    assert [m.data for m in await bus.read(stream, key="k1")] == [1, 4, 7]
    assert [m.data for m in await bus.read(stream, key="k1", backwards=True)] == [7, 4, 1]


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("a.b.>", {"a.b.c", "a.b.c.d", "a.b.c.d.e"}),
        ("a.>", {"a.b", "a.b.c", "a.b.c.d", "a.b.c.d.e"}),
        ("*.b.*", {"a.b.c"}),
        ("a.*.c.*", {"a.b.c.d"}),
        ("a.b", {"a.b"}),
        ("*", {"a", "x+y"}),
        (">", {"a", "a.b", "a.b.c", "a.b.c.d", "a.b.c.d.e", "x+y"}),
        ("x+y", {"x+y"}),
        ("x.y", set()),
        ("*.*", {"a.b"}),
    ],
)
async def test_key_patterns_follow_the_rules_of_nats(bus: Any, stream: str, pattern: str, matches: set[str]) -> None:
    keys = ["a", "a.b", "a.b.c", "a.b.c.d", "a.b.c.d.e", "x+y", None]
    await bus.publish_many(stream, [Message(key=key, data=0) for key in keys])

    assert {m.key async for m in bus.scan(stream, key_pattern=pattern)} == matches


@pytest.mark.parametrize("pattern", ["", "a..b", ".a", "a.", "a*", "*a.b", ">.a", "a.>.b", "a b", "a.>>"])
async def test_an_invalid_pattern_is_refused(bus: Any, stream: str, pattern: str) -> None:
    with pytest.raises(postbus.InvalidInput, match="key pattern"):
        await bus.read(stream, key_pattern=pattern)


async def test_a_wildcard_as_key_is_refused_with_a_hint(bus: Any, stream: str) -> None:
    with pytest.raises(postbus.InvalidInput) as caught:
        await bus.read(stream, key="a.*")
    assert caught.value.hint is not None
    assert "key_pattern" in caught.value.hint


async def test_only_messages_of_a_partition_in_order(bus: Any, stream: str) -> None:
    everything = await fill(bus, stream)
    for partition in range(4):
        found = [m.seq async for m in bus.scan(stream, partition=partition, page_size=7)]
        assert found == [m.seq for m in everything if m.partition == partition]
    assert list(await bus.read(stream, partition=4)) == []


@pytest.mark.parametrize("backwards", [False, True])
async def test_a_range_of_times(bus: Any, stream: str, sql: Any, backwards: bool) -> None:
    everything = await fill(bus, stream, 100)
    info = await bus.stream_info(stream)
    # Spread the messages over hours, some of them a moment out of order as concurrent publishers make them.
    sql.execute(
        f"update postbus_data.log_{info.id}_1 set published_at = '2026-01-01 00:00+00'::timestamptz "
        "+ make_interval(secs => 60 * seq - case when seq % 7 = 0 then 0.5 + 60 else 0 end)"
    )
    everything = [m async for m in bus.scan(stream)]
    for first, last in ((10, 20), (1, 100), (50, 50), (0, 5), (95, 200)):
        from_time = everything[0].published_at + timedelta(seconds=60 * (first - 1))
        to_time = everything[0].published_at + timedelta(seconds=60 * (last - 1))
        found = [
            m.seq
            async for m in bus.scan(stream, from_time=from_time, to_time=to_time, backwards=backwards, page_size=3)
        ]
        expected = [m.seq for m in everything if m.seq % 7 and from_time <= m.published_at < to_time]
        assert [seq for seq in found if seq % 7] == (expected[::-1] if backwards else expected)


async def test_times_before_and_after_everything(bus: Any, stream: str) -> None:
    everything = await fill(bus, stream, 10)
    hour = timedelta(hours=1)
    first, last = everything[0].published_at, everything[-1].published_at

    assert len(await bus.read(stream, from_time=first - hour)) == 10
    assert len(await bus.read(stream, from_time=last + hour)) == 0
    assert len(await bus.read(stream, to_time=first - hour)) == 0
    assert len(await bus.read(stream, to_time=last + hour)) == 10


@pytest.mark.parametrize("max_messages", [0, 10_001, -1])
async def test_a_page_has_1_to_10000_messages(bus: Any, stream: str, max_messages: int) -> None:
    with pytest.raises(postbus.InvalidInput, match="max_messages"):
        await bus.read(stream, max_messages=max_messages)


async def test_tokens_of_another_stream_direction_or_none_at_all_are_refused(bus: Any, stream: str) -> None:
    await fill(bus, stream, 5)
    page = await bus.read(stream, max_messages=1)
    await bus.create_stream(f"{stream}-2")

    with pytest.raises(postbus.InvalidInput, match="another stream"):
        await bus.read(f"{stream}-2", resume=page.resume)
    with pytest.raises(postbus.InvalidInput, match="other direction"):
        await bus.read(stream, resume=page.resume, backwards=True)
    for bad in ("", "x", "f:1", "f:1:2:3", "f:1:-2", "f:99999999999:1"):
        with pytest.raises(postbus.InvalidInput, match="resume token"):
            await bus.read(stream, resume=bad)


async def test_a_gap_of_millions_of_seqs_is_crossed_at_once(bus: Any, stream: str, sql: Any) -> None:
    info = await bus.stream_info(stream)
    await bus.publish(stream, key="a", data="before")
    sql.execute(f"select setval('postbus_data.seq_{info.id}', 1000000000)")
    await bus.publish(stream, key="a", data="after")

    assert [m.data for m in await bus.read(stream)] == ["before", "after"]
    assert [m.data for m in await bus.read(stream, backwards=True)] == ["after", "before"]
    assert [m.data for m in await bus.read(stream, key="a")] == ["before", "after"]


async def test_a_rare_key_is_found_over_pages_of_bounded_work(bus: Any, name: str, sql: Any) -> None:
    await bus.create_stream(name, partitions=1)
    await bus.publish(name, key="rare", data="first")
    for _ in range(15):
        sql.execute(
            "select postbus.publish_many(%s, array_agg('common'::text), array_agg('0'::text)) from generate_series(1, 10000)",
            (name,),
        )
    await bus.publish(name, key="rare", data="last")

    first_page = await bus.read(name, key="rare")
    assert [m.data for m in first_page] == ["first"]
    assert first_page.resume is not None
    assert int(first_page.resume.split(":")[2]) <= 110_001
    assert [m.data async for m in bus.scan(name, key="rare")] == ["first", "last"]
    assert [m.data async for m in bus.scan(name, key_pattern="rare", backwards=True)] == ["last", "first"]


async def test_a_token_is_never_beyond_the_last_message(bus: Any, stream: str, connect: Any) -> None:
    """A number that was given out and rolled back may, after a crash, be given to a new message."""
    await bus.publish(stream, key="k", data=1)
    publisher = connect(autocommit=False)
    publisher.execute(
        "select postbus.publish_many(%s, data => array_agg('0'::text)) from generate_series(1, 100)", (stream,)
    )
    publisher.rollback()

    for arguments in ({}, {"key": "other"}, {"key_pattern": "x.>"}):
        page = await bus.read(stream, **arguments)
        assert page.resume is not None
        assert page.resume.endswith(":1")


async def test_purged_messages_are_gone_at_once(bus: Any, stream: str) -> None:
    everything = await fill(bus, stream, 20)
    assert await bus.purge(stream, before_seq=11) == 11
    assert [m.seq for m in await bus.read(stream)] == list(range(11, 21))
    assert [m.seq for m in await bus.read(stream, from_seq=1, backwards=True)] == list(range(20, 10, -1))

    assert await bus.purge(stream, before_seq=5) == 11  # Never back.
    await bus.purge(stream, everything=True)
    assert list(await bus.read(stream)) == []
    await bus.publish(stream, data="new")
    assert [m.data for m in await bus.read(stream)] == ["new"]
    assert len(everything) == 20

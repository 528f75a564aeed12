"""Groups: claim, fetch, commit by position, and workers that share the partitions."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

import postbus
from postbus import Message


async def fill(bus: Any, stream: str, count: int, start: int = 0) -> None:
    await bus.publish_many(stream, [Message(key=f"k{n % 20}", data=n) for n in range(start, start + count)])


async def group_of(bus: Any, stream: str, name: str = "g", **settings: Any) -> Any:
    await bus.create_group(stream, name, **settings)
    return bus.group(stream, name)


async def drain(group: Any, size: int = 7, **options: Any) -> list[Any]:
    found: list[Any] = []
    while claims := await group.claim(size, **options):
        found += [message.data for message in await group.fetch(claims)]
        if options:
            await group.commit(claims)
    return found


async def test_each_group_gets_the_whole_log_once(bus: Any, stream: str) -> None:
    groups = [await group_of(bus, stream, name) for name in ("a", "b")]
    await fill(bus, stream, 100)
    for group in groups:
        found = await drain(group)
        assert sorted(found) == list(range(100))
        by_key: dict[int, list[int]] = {}
        for n in found:
            by_key.setdefault(n % 20, []).append(n)
        assert all(numbers == sorted(numbers) for numbers in by_key.values())
        assert (await group.stats()).lag_estimate == 0
    await fill(bus, stream, 5, 100)
    assert sorted(await drain(groups[0])) == list(range(100, 105))


async def test_ranges_are_adjacent_and_an_empty_claim_changes_nothing(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1)
    group = await group_of(bus, name)
    assert await group.claim(3) == []
    await bus.publish_many(name, [Message(data=n) for n in range(5)])
    first = await group.claim(3)
    second = await group.claim(3)
    assert [(c.from_seq, c.to_seq, c.message_count) for c in [*first, *second]] == [(1, 3, 3), (4, 5, 2)]
    assert await group.claim(3) == []
    assert [m.data for m in await group.fetch([*first, *second])] == [0, 1, 2, 3, 4]


async def test_claims_at_the_same_time_are_disjoint(bus: Any, stream: str) -> None:
    group = await group_of(bus, stream)
    await fill(bus, stream, 400)
    found = await asyncio.gather(*(drain(group, 5) for _ in range(6)))
    assert Counter(n for part in found for n in part) == Counter(range(400))


async def test_a_claim_that_rolls_back_is_claimed_again(bus: Any, stream: str, connect: Any) -> None:
    await group_of(bus, stream)
    await fill(bus, stream, 10)
    connection = connect(autocommit=False)
    query = "select from_seq, to_seq from postbus.claim(%s, 'g', 100)"
    rolled_back = connection.execute(query, (stream,)).fetchall()
    connection.rollback()
    assert sorted(connection.execute(query, (stream,)).fetchall()) == sorted(rolled_back)


async def test_a_leased_range_is_redelivered_until_it_is_committed(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1)
    group = await group_of(bus, name)
    await bus.publish_many(name, [Message(data=n) for n in range(6)])
    (lost,) = await group.claim(3, lease=0.2)
    assert await group.claim(3, lease=10) == []  # Nobody passes it in its partition.
    await asyncio.sleep(0.25)
    (again,) = await group.claim(3, lease=10)
    assert (again.from_seq, again.to_seq) == (lost.from_seq, lost.to_seq)
    assert await group.commit(lost) == 0  # Too late: it moves nothing.
    assert await group.commit(again) == 1
    assert await group.commit(again) == 0
    (rest,) = await group.claim(3, lease=10)
    assert rest.from_seq == again.to_seq + 1
    assert await group.commit(rest, to_seq=rest.from_seq) == 1
    assert (await group.stats()).in_flight == 2
    assert await group.release(rest) == 1
    (left,) = await group.claim(3, lease=10)
    assert (left.from_seq, left.message_count) == (rest.from_seq + 1, 2)


async def test_a_lease_is_extended(bus: Any, stream: str) -> None:
    group = await group_of(bus, stream)
    await bus.publish(stream, key="k", data=1)
    claims = await group.claim(lease=0.3)
    assert await group.extend(claims, 10) == 1
    await asyncio.sleep(0.4)
    assert await group.claim(lease=1) == []
    assert await group.commit(claims) == 1


async def test_a_claim_waits_for_messages(bus: Any, stream: str) -> None:
    group = await group_of(bus, stream)
    waiting = asyncio.create_task(group.claim(10, wait=10))
    await asyncio.sleep(0.2)
    await bus.publish(stream, key="k", data=1)
    assert len(await asyncio.wait_for(waiting, 5)) == 1
    assert await group.claim(10, wait=0.1) == []


async def test_messages_are_received_in_one_call_at_most_once(bus: Any, stream: str) -> None:
    group = await group_of(bus, stream)
    waiting = asyncio.create_task(group.receive(10, wait=10))
    await asyncio.sleep(0.1)
    await fill(bus, stream, 2000)
    found = list(await asyncio.wait_for(waiting, 5))

    async def take(size: int) -> None:
        while messages := await group.receive(size):
            found.extend(messages)

    await asyncio.gather(*(take(size) for size in (1, 7, 50)))
    assert Counter(message.data for message in found) == Counter(range(2000))
    assert (await group.stats()).in_flight == 0
    await fill(bus, stream, 1, 2000)
    claims = await group.claim(lease=10)  # A lease is respected.
    assert await group.receive() == []
    await group.release(claims)
    assert [message.data for message in await group.receive()] == [2000]


async def test_a_group_comes_to_go_the_shortest_way(bus: Any, name: str, sql: Any) -> None:
    """Its position names the segment that holds the rest, without which each receive would look at all of them."""
    await bus.create_stream(name, partitions=1)
    group = await group_of(bus, name)
    await fill(bus, name, 50)
    await group.receive(10)
    segments = sql.execute(
        "select p.segment from postbus_data.position as p join postbus_data.consumer as c on c.id = p.consumer_id "
        "where c.stream_name = %s and p.partition = 0",
        (name,),
    ).fetchall()
    assert segments == [(1,)]


async def test_seek_gives_up_claimed_ranges(bus: Any, stream: str) -> None:
    group = await group_of(bus, stream, start="latest")
    await fill(bus, stream, 10)
    claims = await group.claim(3, lease=10)
    await group.seek("earliest")
    assert await group.commit(claims) == 0
    assert len(await drain(group)) == 10
    await group.seek(from_seq=6)
    assert len(await drain(group)) == 5


async def test_a_committed_range_and_the_users_own_writes_stand_or_fall_together(
    bus: Any, stream: str, connect: Any
) -> None:
    group = await group_of(bus, stream)
    await bus.publish(stream, key="k", data=1)
    claims = await group.claim(lease=0.3)
    connection = connect(autocommit=False)
    connection.execute("select postbus.commit(%s, 'g', %s)", (stream, [claims[0].token]))
    connection.rollback()
    await asyncio.sleep(0.35)
    assert len(await group.claim(lease=10)) == 1


async def test_a_group_reads_across_segments_and_reports_missed_messages(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=2, segment_bytes=65536, max_messages=200)
    group = await group_of(bus, name)
    for start in range(0, 400, 50):
        await bus.publish_many(name, [Message(key=f"k{n}", data=[n, "x" * 1500]) for n in range(start, start + 50)])
        for _ in range(3):
            await bus.maintain(name)
    found = sorted(n for n, _ in await drain(group, 30, lease=10))
    assert found == list(range(found[0], 400))
    assert found[0] >= 150
    assert (await group.stats()).missed_estimate > 100


async def test_partitions_are_shared_out_among_those_that_are_alive(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=8)
    group = await group_of(bus, name)
    async with group.join("a", session=60) as a:
        assert a.partitions == tuple(range(8))
        async with group.join("b", session=60) as b:
            assert b.partitions == ()  # "a" has not given up any yet.
            await a.heartbeat()
            await b.heartbeat()
            assert len(a.partitions) == len(b.partitions) == 4
            assert not set(a.partitions) & set(b.partitions)
            c = group.join("c", session=1)
            for _ in range(2):
                for member in (a, b, c):
                    await member.heartbeat()
            assert sorted([*a.partitions, *b.partitions, *c.partitions]) == list(range(8))
            assert sorted(map(len, (a.partitions, b.partitions, c.partitions))) == [2, 3, 3]
            await asyncio.sleep(1.1)  # "c" is not heard of any more.
            assert await group.claim(worker="c", lease=1) == []
            for _ in range(2):
                await a.heartbeat()
                await b.heartbeat()
            assert sorted([*a.partitions, *b.partitions]) == list(range(8))
        assert await a.heartbeat() == tuple(range(8))


async def test_a_partition_never_has_two_readers(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=4)
    group = await group_of(bus, name)
    await fill(bus, name, 600)
    reading: Counter[int] = Counter()
    seen: Counter[int] = Counter()
    order: dict[int, int] = {}

    async def work(member: Any, turns: int) -> None:
        async with member:
            for _ in range(turns):
                claims = await member.claim(10, wait=0.5)
                if not claims and sum(seen.values()) >= 600:
                    return
                for claim in claims:
                    reading[claim.partition] += 1
                    assert reading[claim.partition] == 1
                await asyncio.sleep(0.005)
                for message in await member.fetch(claims):
                    seen[message.data] += 1
                    assert order.get(message.partition, 0) < message.seq
                    order[message.partition] = message.seq
                for claim in claims:
                    reading[claim.partition] -= 1
                assert await member.commit(claims) == len(claims)

    async with asyncio.timeout(60):
        await asyncio.gather(
            work(group.join(session=5), 500), work(group.join(session=5), 10), work(group.join(session=5), 500)
        )
        if sum(seen.values()) < 600:
            await work(group.join(session=5), 500)
    assert seen == Counter(range(600))


async def test_a_group_and_a_consumer_are_not_mistaken_for_each_other(bus: Any, stream: str) -> None:
    group = await group_of(bus, stream)
    await bus.create_consumer(stream, "c")
    with pytest.raises(postbus.Conflict, match="is a group"):
        await bus.consumer(stream, "g").receive()
    with pytest.raises(postbus.Conflict, match="not a group"):
        await bus.group(stream, "c").claim()
    with pytest.raises(postbus.Conflict, match="exists"):
        await bus.create_group(stream, "c")
    with pytest.raises(postbus.NotFound):
        await bus.group(stream, "none").claim()
    with pytest.raises(postbus.InvalidInput, match="max_messages"):
        await group.claim(0)
    with pytest.raises(postbus.InvalidInput, match="worker"):
        await group.join("a b").heartbeat()
    assert {info.name: info.is_group for info in await bus.list_consumers(stream)} == {"g": True, "c": False}
    await group.drop()
    with pytest.raises(postbus.NotFound):
        await group.claim()


async def one_partition(bus: Any, name: str, count: int) -> Any:
    await bus.create_stream(name, partitions=1)
    group = await group_of(bus, name)
    await bus.publish_many(name, [Message(data=n) for n in range(count)])
    return group


async def test_ranges_of_a_silent_loop_go_to_others_and_no_longer_to_it(bus: Any, name: str) -> None:
    group = await one_partition(bus, name, 4)
    silent = group.batches(1, lease=0.2, wait=0)
    assert [m.data for m in await anext(silent)] == [0]

    found = [m.data async for batch in group.batches(2, wait=5, lease=30) for m in batch if len(batch) == 2]
    assert found == [0, 1, 2, 3]
    assert [batch async for batch in silent] == []


async def test_a_loop_keeps_what_it_works_on_for_long(bus: Any, name: str) -> None:
    group = await one_partition(bus, name, 5)
    found = []
    async for batch in group.batches(1, lease=0.9, wait=0):
        await asyncio.sleep(0.35)
        found += [m.data for m in batch]
        assert await group.claim(lease=30) == []
    assert found == [0, 1, 2, 3, 4]


async def test_a_claim_never_waits_for_a_commit_that_is_open(bus: Any, name: str, connect: Any) -> None:
    group = await one_partition(bus, name, 2)
    (claimed,) = await group.claim(1, lease=30)
    committing, other = connect(autocommit=False), connect()
    committing.execute("select postbus.commit(%s, 'g', %s)", (name, [claimed.token]))
    other.execute("set lock_timeout = '2s'")
    claim = "select c.message_count from postbus.claim(%s, 'g', 1, '30 s') as c"
    assert other.execute(claim, (name,)).fetchall() == []

    committing.commit()
    assert other.execute(claim, (name,)).fetchall() == [(1,)]


async def test_loops_at_the_same_time_share_the_messages(bus: Any, stream: str) -> None:
    group = await group_of(bus, stream)
    await fill(bus, stream, 2000)

    async def loop() -> list[int]:
        return [m.data async for batch in group.batches(10, ahead=30, wait=0.5) for m in batch]

    found = await asyncio.gather(*(loop() for _ in range(6)))
    assert Counter(n for part in found for n in part) == Counter(range(2000))

"""Groups: the same over Postgres and over HTTP."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import aclosing
from typing import Any

import pytest

import postbus

pytestmark = pytest.mark.newest_server


async def test_ranges_are_claimed_fetched_and_committed(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "g")
    group = bus.group(stream, "g")
    await bus.publish_many(stream, [postbus.Message(key=f"k{n}", data=n, headers={"h": "1"}) for n in range(10)])

    found: list[Any] = []
    while claims := await group.claim(4, lease=30):
        found += await group.fetch(claims)
        assert await group.extend(claims, 60) == sum(claim.message_count for claim in claims)
        assert await group.commit(claims) == len(claims)
    assert sorted(message.data for message in found) == list(range(10))
    assert found[0].headers == {"h": "1"}
    assert (await group.stats()).lag_estimate == 0

    await group.seek("earliest")
    (claim, *_) = await group.claim(1, lease=30)
    assert await group.release(claim) == 1
    assert await group.commit(claim, to_seq=0) == 1
    assert await group.claim(1, wait=0.05)
    await group.drop()
    with pytest.raises(postbus.NotFound):
        await group.claim()


async def test_a_claim_waits_and_may_be_at_most_once(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "g", start="latest", keep_unread=True, expire_after=3600)
    group = bus.group(stream, "g")
    await bus.publish(stream, key="k", data=1)
    (claim,) = await group.claim(wait=5)
    assert (claim.token, claim.deadline, claim.message_count) == (None, None, 1)
    assert await group.claim() == []
    await group.pause()
    await bus.publish(stream, key="k", data=2)
    assert await group.claim() == []
    await group.resume()
    assert [message.data for message in await group.fetch(await group.claim())] == [2]


async def test_members_share_the_partitions(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "g")
    group = bus.group(stream, "g")
    await bus.publish_many(stream, [postbus.Message(key=f"k{n}", data=n) for n in range(40)])
    async with group.join("a") as a, group.join("b") as b:
        await a.heartbeat()
        await b.heartbeat()
        assert sorted([*a.partitions, *b.partitions]) == [0, 1, 2, 3]
        for member in (a, b):
            claims = await member.claim(100)
            assert {claim.partition for claim in claims} <= set(member.partitions)
            await member.fetch(claims)
            assert await member.commit(claims) == len(claims)
    assert (await group.stats()).lag_estimate == 0


async def test_a_loop_gives_each_message_once_in_order_of_its_partition_and_commits(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "g")
    group = bus.group(stream, "g")
    await bus.publish_many(stream, [postbus.Message(key=f"k{n}", data=n) for n in range(250)])

    seqs: dict[int, list[int]] = {}
    async for batch in group.batches(7, ahead=40, wait=0):
        (partition,) = {message.partition for message in batch}
        assert len(batch) <= 7
        seqs.setdefault(partition, []).extend(message.seq for message in batch)
    assert all(found == sorted(found) for found in seqs.values())
    assert sorted(seq for found in seqs.values() for seq in found) == list(range(1, 251))
    stats = await group.stats()
    assert (stats.lag_estimate, stats.in_flight) == (0, 0)


async def test_leaving_a_loop_commits_finished_batches_and_returns_the_rest_at_once(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1)
    await bus.create_group(name, "g")
    group = bus.group(name, "g")
    await bus.publish_many(name, [postbus.Message(data=n) for n in range(10)])

    async with aclosing(group.batches(3, wait=0)) as batches:
        async for batch in batches:
            if batch[0].data == 6:
                break
    left = [[message.data for message in batch] async for batch in group.batches(3, wait=0)]
    assert left == [[6, 7, 8], [9]]


async def test_a_loop_waits_for_messages(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "g")

    async def first_data() -> Any:
        async with aclosing(bus.group(stream, "g").batches(wait=20)) as batches:
            return (await anext(batches))[0].data

    waiting = asyncio.create_task(first_data())
    await asyncio.sleep(0.2)
    await bus.publish(stream, data="late")
    assert await waiting == "late"


async def test_a_loop_over_nothing_at_a_time_is_refused(bus: Any, stream: str) -> None:
    await bus.create_group(stream, "g")
    for size in (0, 10_001):
        with pytest.raises(postbus.InvalidInput, match="is not between 1 and 10,000"):
            await anext(bus.group(stream, "g").batches(size, wait=0))


@pytest.mark.parametrize("verb", ["commit", "release"])
async def test_what_is_no_token_is_refused(bus: Any, stream: str, verb: str) -> None:
    await bus.create_group(stream, "g")
    claim = postbus.Claim(partition=0, from_seq=1, to_seq=1, message_count=1, token="nonsense", deadline=None)
    with pytest.raises(postbus.InvalidInput):
        await getattr(bus.group(stream, "g"), verb)(claim)
    never_given = dataclasses.replace(claim, token="0123456789abcdef")
    assert await getattr(bus.group(stream, "g"), verb)(never_given) == 0

"""Groups: the same over Postgres and over HTTP."""

from __future__ import annotations

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

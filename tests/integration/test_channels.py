"""Channels: turns between tenants, and limits that hold each tenant by itself."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import postbus
from postbus import Message


@pytest.fixture
async def tenants(bus: Any, name: str) -> str:
    """A stream whose first token names the tenant, in one partition: so turns are between all of them."""
    await bus.create_stream(name, partitions=1, channel_tokens=1)
    return name


async def fill(bus: Any, stream: str, tenant: str, count: int, start: int = 0) -> None:
    messages = [Message(key=f"{tenant}.job.{n}", data=n) for n in range(start, start + count)]
    for first in range(0, count, 5000):
        await bus.publish_many(stream, messages[first : first + 5000])


def tenants_of(batch: Any) -> list[str]:
    return [each.key.partition(".")[0] for each in batch]


async def turns(consumer: Any, size: int = 1, most: int = 100_000) -> list[str]:
    """The tenants in the order in which they are served, until nothing is left."""
    served: list[str] = []
    while len(served) < most and (batch := await consumer.receive(size)):
        served += tenants_of(batch)
        await consumer.ack(batch)
    return served


async def test_a_tenant_with_one_message_is_served_within_two_turns(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none", fair=True)
    await fill(bus, tenants, "whale", 2000)
    await fill(bus, tenants, "mouse", 1)
    assert "mouse" in await turns(consumer, most=3)
    await fill(bus, tenants, "other", 1)
    assert "other" in await turns(consumer, most=3)
    rest = await turns(consumer, 100)
    assert rest.count("whale") >= 1990
    assert not await consumer.receive()


async def test_every_message_is_delivered_once_and_each_channel_in_order(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=4, channel_tokens=1)
    consumer = await bus.create_consumer(name, "c", order="none", fair=True)
    published = [Message(key=f"t{n * n % 37}.{n}", data=n) for n in range(3000)]
    await bus.publish_many(name, published[:1500])
    found: dict[str, list[int]] = {}
    while batch := await consumer.receive(17):
        for each in batch:
            found.setdefault(each.key.partition(".")[0], []).append(each.data)
        await consumer.ack(batch)
        if published[1500:]:
            await bus.publish_many(name, published[1500:1600])
            del published[1500:1600]
    assert sorted(n for mine in found.values() for n in mine) == list(range(3000))
    assert all(mine == sorted(mine) for mine in found.values())


async def test_a_limit_of_five_keeps_five_in_flight_all_the_time(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none")
    await bus.channels.set(tenants, "*", max_concurrency=5)
    await fill(bus, tenants, "a", 20)
    held = await consumer.receive(100)
    assert len(held) == 5
    done = 5
    while held:
        assert not await consumer.receive(100)
        await consumer.ack(held[:1])
        more = await consumer.receive(100)
        assert len(more) == (1 if done < 20 else 0)
        done += len(more)
        held = [*held[1:], *more]
    assert done == 20


async def test_a_limited_channel_at_the_head_does_not_hold_the_others(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none")
    await bus.channels.set(tenants, "full", max_concurrency=1)
    await fill(bus, tenants, "full", 1000)
    held = await consumer.receive(10)
    assert tenants_of(held) == ["full"]
    await fill(bus, tenants, "free", 3)
    assert tenants_of(await consumer.receive(10)) == ["free"] * 3


async def test_weights_of_one_two_and_four_give_turns_of_one_two_and_four(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none", fair=True)
    for tenant, weight in (("a", 1), ("b", 2), ("c", 4)):
        await bus.channels.set(tenants, tenant, weight=weight)
        await fill(bus, tenants, tenant, 300)
    # Until all are known to have more than a turn.
    await turns(consumer, most=10)
    served = await turns(consumer, most=70)
    assert [served.count(tenant) for tenant in "abc"] == [10, 20, 40]


async def test_the_turns_of_one_consumer_do_not_touch_another(bus: Any, tenants: str) -> None:
    fair = await bus.create_consumer(tenants, "fair", order="none", fair=True)
    plain = await bus.create_consumer(tenants, "plain", order="none")
    await fill(bus, tenants, "a", 50)
    await fill(bus, tenants, "b", 50)
    assert await turns(plain) == ["a"] * 50 + ["b"] * 50
    assert sorted((await turns(fair))[:10]) != ["a"] * 10


async def test_light_tenants_hardly_wait_behind_heavy_ones(bus: Any, tenants: str) -> None:
    """The skew of trigger.dev: 120 old messages of one tenant, then four with ten each."""
    consumer = await bus.create_consumer(tenants, "c", order="none", fair=True)
    await fill(bus, tenants, "heavy", 120)
    for tenant in "abcd":
        await fill(bus, tenants, tenant, 10)
    served = await turns(consumer)
    waits = [place for place, tenant in enumerate(served) if tenant != "heavy"]
    first_in_first_out = range(120, 160)
    assert sum(waits) / len(waits) <= 0.35 * sum(first_in_first_out) / 40
    assert sorted(served) == sorted(["heavy"] * 120 + list("abcd") * 10)


async def test_a_trickle_is_served_beside_a_flood(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none", fair=True)
    await fill(bus, tenants, "flood", 400)
    for n in range(20):
        await fill(bus, tenants, "trickle", 1, n)
        assert "trickle" in await turns(consumer, most=2)


async def test_one_tenant_with_many_channels_cannot_shut_out_another(bus: Any, tenants: str) -> None:
    """The sybil of trigger.dev: twenty channels with eight older messages each, and a light one with ten."""
    consumer = await bus.create_consumer(tenants, "c", order="none", fair=True)
    for n in range(20):
        await fill(bus, tenants, f"attacker-{n}", 8)
    await fill(bus, tenants, "light", 10)
    served = await turns(consumer)
    # First in, first out, 160 others would come before.
    assert served.index("light") <= 2 * 21
    for most in (84, 126, 170):
        assert served[:most].count("light") >= 0.5 * most / 21


async def test_a_rate_is_never_passed_and_its_burst_comes_at_once(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none")
    await bus.channels.set(tenants, "*", max_rate=20, per=1, burst=5)
    await fill(bus, tenants, "a", 30)
    began = time.monotonic()
    times: list[float] = []
    while time.monotonic() - began < 1 and (batch := await consumer.receive(30, wait=1)):
        times += [time.monotonic() - began] * len(batch)
        await consumer.ack(batch)
    # Some are due just now, and the clock of this process is not that of the server.
    assert all(place < 5 + 20 * (each + 0.05) for place, each in enumerate(times))
    assert times[4] - times[0] < 0.05
    # On a busy machine some are missed.
    assert len(times) >= 10


async def test_retries_count_against_the_rate_and_do_not_starve_new_messages(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none")
    await bus.channels.set(tenants, "*", max_concurrency=4)
    await fill(bus, tenants, "a", 40)
    seen: dict[int, int] = {}
    for _ in range(200):
        # What has failed is due at once.
        await bus.sweep(tenants)
        if not (batch := await consumer.receive(10)):
            break
        assert len(batch) <= 4
        for each in batch:
            seen[each.data] = seen.get(each.data, 0) + 1
        failing = [each for each in batch if each.data < 8 and seen[each.data] < 10]
        await consumer.nack(failing)
        await consumer.ack([each for each in batch if each not in failing])
        if all(seen.get(n) for n in range(8, 40)):
            break
    # New messages went on although eight others failed all the time.
    assert all(seen.get(n) == 1 for n in range(8, 40))
    assert max(seen.values()) < 10
    rest = [each for _ in range(100) for each in await consumer.receive(10) if await consumer.ack([each])]
    assert {each.data for each in rest} <= set(range(8))
    assert all(each.attempt > 1 for each in rest)


async def test_an_expired_lease_frees_its_slot_and_its_message_comes_again(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none", ack_wait=0.3)
    await bus.channels.set(tenants, "*", max_concurrency=1)
    await fill(bus, tenants, "a", 2)
    assert [(each.data, each.attempt) for each in await consumer.receive(5)] == [(0, 1)]
    assert not await consumer.receive(5)
    await asyncio.sleep(0.5)
    found = [*await consumer.receive(5, wait=3)]
    assert len(found) == 1
    await consumer.ack(found)
    found += await consumer.receive(5, wait=3)
    assert sorted((each.data, each.attempt) for each in found) == [(0, 2), (1, 1)]


async def test_limits_that_change_while_messages_are_in_flight_count_from_the_next_receive(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=2, channel_tokens=1)
    consumer = await bus.create_consumer(name, "c", order="none")
    await fill(bus, name, "a", 30)
    # Nothing limits it yet, and it is not by channel.
    held = [*await consumer.receive(6)]
    failed = await consumer.receive(2)
    await consumer.nack(failed)
    assert len(held) == 6
    await bus.channels.set(name, "*", max_concurrency=7)
    held += await consumer.receive(10)
    assert len(held) == 7
    await bus.channels.set(name, "a", max_concurrency=2)
    while len(held) > 2:
        await consumer.ack(held.pop())
        assert not await consumer.receive(10)
    await consumer.ack(held.pop())
    held += await consumer.receive(10)
    assert len(held) == 2
    await bus.channels.remove(name, "a")
    await bus.channels.remove(name, "*")
    await consumer.ack(held)
    rest = await turns(consumer, 10)
    assert len(rest) == 30 - 7 - 1


async def test_the_most_specific_pattern_counts(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1, channel_tokens=2)
    consumer = await bus.create_consumer(name, "c", order="none")
    for pattern, most in ((">", 4), ("a.*", 3), ("a.x", 1), ("*.x", 2)):
        await bus.channels.set(name, pattern, max_concurrency=most)
    for channel in ("a.x", "a.y", "b.x", "b.y", "b"):
        await bus.publish_many(
            name, [Message(key=f"{channel}.{n}.k" if "." in channel else channel, data=n) for n in range(9)]
        )
    found = [".".join(each.key.split(".")[:2]) for each in await consumer.receive(100)]
    assert {each: found.count(each) for each in found} == {"a.x": 1, "a.y": 3, "b.x": 2, "b.y": 4, "b": 4}


async def test_the_backlog_counts_what_the_position_has_passed_over(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none", fair=True)
    await fill(bus, tenants, "whale", 5000)
    await fill(bus, tenants, "mouse", 5)
    done = len(await turns(consumer, 10, most=100))
    stats = await consumer.stats()
    assert not stats.backlog_is_exact
    assert 4500 <= stats.backlog <= 5500
    while (left := 5005 - done) > 900:
        done += len(await turns(consumer, 500, most=1))
    stats = await consumer.stats()
    assert (stats.backlog, stats.backlog_is_exact) == (left, True)


async def test_segments_stay_until_a_channel_has_had_its_messages(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=1, channel_tokens=1, until_acked=True, segment_bytes=65536)
    consumer = await bus.create_consumer(name, "c", order="none", fair=True)
    await bus.channels.set(name, "held", paused=True)
    await fill(bus, name, "held", 50)
    for start in range(0, 3000, 1000):
        await bus.publish_many(name, [Message(key=f"free.{n}", data="x" * 200) for n in range(start, start + 1000)])
        await bus.maintain(name)
        assert set(await turns(consumer, 500)) == {"free"}
        await bus.maintain(name)
    assert (await bus.stream_info(name)).segment_count > 1
    await bus.channels.resume(name, "held")
    assert await turns(consumer, 100) == ["held"] * 50
    for _ in range(3):
        await bus.maintain(name)
    assert (await bus.stream_info(name)).segment_count <= 2


async def test_turns_go_on_over_segments_and_while_they_change(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=2, channel_tokens=1, segment_bytes=65536)
    consumer = await bus.create_consumer(name, "c", order="none", fair=True)
    found: list[int] = []
    for start in range(0, 6000, 1000):
        await bus.publish_many(
            name,
            [
                Message(key=f"t{n % 5 * (n % 3)}.{n}", data={"n": n, "more": "x" * 100})
                for n in range(start, start + 1000)
            ],
        )
        await bus.maintain(name)
        batch = await consumer.receive(300)
        found += [each.data["n"] for each in batch]
        await consumer.ack(batch)
    while batch := await consumer.receive(300):
        found += [each.data["n"] for each in batch]
        await consumer.ack(batch)
    assert sorted(found) == list(range(6000))


async def test_a_filter_holds_for_turns_too_and_expired_messages_are_skipped(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none", fair=True, filter=postbus.Filter(data="$ > 5"))
    await fill(bus, tenants, "a", 20)
    await fill(bus, tenants, "b", 8)
    for n in range(100, 110):
        await bus.publish(tenants, key="a.short", data=n, ttl=0.1)
    await asyncio.sleep(0.2)
    found = []
    while batch := await consumer.receive(3):
        found += [each.data for each in batch]
        await consumer.ack(batch)
    assert sorted(found) == sorted([*range(6, 20), 6, 7])
    stats = await consumer.stats()
    assert stats.backlog == 0


async def test_a_replay_and_a_seek_begin_anew(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none", fair=True)
    await fill(bus, tenants, "a", 30)
    assert len(await turns(consumer, 8, most=16)) == 16
    # What was passed over is not replayed: it comes anyway.
    assert await consumer.replay() == 16
    assert len(await turns(consumer, 8)) == 30
    await consumer.seek(start="earliest")
    assert len(await turns(consumer, 8)) == 30


async def test_a_queue_gives_its_tenants_turns(bus: Any, name: str) -> None:
    await bus.create_queue(name, channel_tokens=1, fair=True)
    queue = bus.queue(name)
    await fill(bus, name, "whale", 100)
    await fill(bus, name, "mouse", 1)
    assert "mouse" in await turns(queue, most=3)


def test_a_worker_of_a_fair_consumer_holds_no_more_than_it_handles(url: str, name: str) -> None:
    handled: list[str] = []
    with postbus.connect(url) as bus, postbus.connect(url) as other:
        bus.create_stream(name, partitions=1, channel_tokens=1)
        consumer = bus.create_consumer(name, "c", order="none", fair=True)
        bus.publish_many(name, [Message(key=f"whale.{n}", data=n) for n in range(300)])

        def handle(delivery: postbus.Delivery) -> None:
            handled.append((delivery.key or "").partition(".")[0])
            if len(handled) == 100:
                other.publish(name, key="mouse.1", data=0)

        consumer.run(handle, concurrency=2, stop_when_empty=True, install_signal_handlers=False)
    assert len(handled) == 301
    assert handled.index("mouse") <= 100 + 2 * 2 + 4


async def test_a_rate_and_a_concurrency_hold_together(bus: Any, tenants: str) -> None:
    consumer = await bus.create_consumer(tenants, "c", order="none", fair=True)
    await bus.channels.set(tenants, "*", max_concurrency=3, max_rate=1, per=3600, burst=2)
    await fill(bus, tenants, "a", 5)
    batch = await consumer.receive(10)
    assert len(batch) == 2
    await consumer.ack(batch)
    assert not await consumer.receive(10)
    await bus.channels.set(tenants, "*", max_concurrency=3)
    assert len(await consumer.receive(10)) == 3


async def test_a_channel_lies_in_one_partition_and_is_read_by_key_and_in_order_of_keys(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=8, channel_tokens=2)
    by_key = await bus.create_consumer(name, "by_key")
    keys = [f"{tenant}.x.{n % 3}" for n in range(10) for tenant in "abc"]
    await bus.publish_many(name, [Message(key=key, data=None) for key in keys])
    await bus.publish(name, key="a", data=None)
    await bus.publish(name, key="a.x.9", data=None, ttl=60)
    await bus.publish(name, key="a.x.9", data=None, delay=0.05)
    await asyncio.sleep(0.1)
    await bus.sweep(name)
    found = await bus.read(name, max_messages=100)
    assert len(found) == 33
    for tenant in ("a.x.", "b.x.", "c.x."):
        assert len({each.partition for each in found if each.key.startswith(tenant)}) == 1
    assert len(await bus.read(name, key="a.x.9")) == 2
    assert len(await bus.read(name, key="b.x.1")) == 3
    assert len(await turns(by_key, 10)) == 33

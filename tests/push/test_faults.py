"""Endpoints that die and come back, and processes that are killed: nothing is lost, and outages burn no attempts."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

import psycopg
import pytest

import postbus
from postbus.http.guard import Guard
from postbus.push.service import PushService
from tests.push.conftest import eventually, sending
from tests.push.receiver import Received, Receiver
from tests.push.test_sending import is_done, pushed


def in_order_of_keys(endpoint: Receiver) -> bool:
    """Whether the first requests of each message came in the order of its key."""
    last: dict[str | None, int] = {}
    for each in {each.seq: each for each in reversed(endpoint.requests)}.values():
        last.setdefault(each.key, each.seq)
    firsts: dict[int, str | None] = {}
    for each in endpoint.requests:
        firsts.setdefault(each.seq, each.key)
    by_key: dict[str | None, list[int]] = {}
    for seq, key in firsts.items():
        by_key.setdefault(key, []).append(seq)
    return all(seqs == sorted(seqs) for seqs in by_key.values())


async def end_rests(url: str) -> None:
    """Let rests that take seconds end now."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("update postbus_data.push_state set rests_until = now() where rests_until is not null")


async def test_a_dead_endpoint_burns_no_attempts_and_gets_everything_in_order_when_it_is_back(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, concurrency=20, max_deliver=3)
    await endpoint.stop()
    seqs = await bus.publish_many("orders", [postbus.Message(key=f"k.{n % 50}", data=n) for n in range(3000)])

    async with sending(fresh_url), sending(fresh_url):
        await eventually(lambda: has_state(consumer, "resting"), "it rests")
        for _ in range(3):
            await end_rests(fresh_url)
            await asyncio.sleep(1.2)
        assert await has_state(consumer, "resting")
        assert (await consumer.stats()).dead == 0
        # Nothing is sent while it rests: a handful of requests found out that it is dead.
        attempts = await consumer.push.attempts(max_attempts=1000)
        assert len(attempts) < 100
        assert {each.outcome for each in attempts} == {"returned"}

        await endpoint.start()
        await end_rests(fresh_url)
        await eventually(lambda: is_done(consumer), "all are delivered", 40)

    assert sorted({each.seq for each in endpoint.requests}) == seqs
    assert {each.attempt for each in endpoint.requests} == {1}
    assert in_order_of_keys(endpoint)
    assert (await consumer.push.info()).state == "active"


async def has_state(consumer: object, state: str) -> bool:
    return bool((await consumer.push.info()).state == state)  # type: ignore[attr-defined]


async def test_an_endpoint_that_answers_only_errors_rests_and_few_attempts_count(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, concurrency=5, max_deliver=10, retry_schedule=[1])
    endpoint.answer = lambda _: 503
    await bus.publish_many("orders", [postbus.Message(key=f"k.{n}", data=n) for n in range(500)])

    async with sending(fresh_url):
        await eventually(lambda: has_state(consumer, "resting"), "it rests")
        await asyncio.sleep(0.5)
        before = len(endpoint.requests)
        await asyncio.sleep(1.5)
        assert len(endpoint.requests) == before < 30
        # The one request after a rest does not count as an attempt of its message.
        await end_rests(fresh_url)
        await eventually(lambda: len(endpoint.requests) > before, "the probe")
        await asyncio.sleep(0.3)
        assert len(endpoint.requests) == before + 1
        counted = [each for each in await consumer.push.attempts(max_attempts=1000) if each.outcome == "failed"]
        assert len(counted) <= before

        endpoint.answer = lambda _: 200
        await end_rests(fresh_url)
        await consumer.push.resend(failed_since=counted[-1].attempted_at - counted[-1].duration * 2)
        await eventually(lambda: is_done(consumer), "all are delivered", 30)
    assert len({each.seq for each in endpoint.requests}) == 500


async def test_one_message_that_always_fails_does_not_stop_the_others(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, max_deliver=3, retry_schedule=[0.1])
    endpoint.answer = lambda request: 500 if request.key == "bad" else 200
    await bus.publish("orders", key="bad", data=0)
    await bus.publish_many("orders", [postbus.Message(key=f"k.{n}", data=n) for n in range(200)])

    async with sending(fresh_url):
        await eventually(lambda: is_done(consumer), "all are done")
    assert [each.key for each in await consumer.dead_letters()] == ["bad"]
    assert [each.attempt for each in endpoint.requests if each.key == "bad"] == [1, 2, 3]
    # Sent again, it has its attempts anew.
    endpoint.answer = lambda _: 200
    assert await consumer.push.resend(failed_since=(await consumer.dead_letters())[0].died_at) == 1
    async with sending(fresh_url):
        await eventually(lambda: is_done(consumer), "it is sent again")
    assert endpoint.requests[-1].key == "bad"
    assert await consumer.push.resend(endpoint.requests[0].seq) == 1


@pytest.mark.timeout(90)
async def test_a_process_that_is_killed_in_the_middle_of_requests_loses_nothing(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, concurrency=10, timeout=1)
    await consumer.alter(ack_wait=16)
    endpoint.delay = 0.3
    seqs = await bus.publish_many("orders", [postbus.Message(key=f"k.{n}", data=n) for n in range(30)])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.push.sender_process", fresh_url, cwd=Path(__file__).parents[2]
    )
    await eventually(lambda: endpoint.open_count >= 5, "requests are on their way")
    process.kill()
    await process.wait()
    before = len(endpoint.requests)
    endpoint.delay = 0.0
    async with await psycopg.AsyncConnection.connect(fresh_url, autocommit=True) as connection:
        await connection.execute("update postbus_data.lease set deadline = now()")

    async with sending(fresh_url):
        await eventually(lambda: is_done(consumer), "all are delivered", 30)

    sent: dict[int, set[str]] = {}
    for each in endpoint.requests:
        sent.setdefault(each.seq, set()).add(each.id)
    assert sorted(sent) == seqs
    assert all(len(ids) == 1 for ids in sent.values())
    again = [each for each in endpoint.requests[before:] if each.attempt > 1]
    assert again
    assert {each.id for each in again} & {each.id for each in endpoint.requests[:before]}


async def test_a_slow_endpoint_does_not_slow_another(bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver) -> None:
    slow = await pushed(bus, endpoint, timeout=30)
    endpoint.answer = lambda request: None if "slow" in request.headers else 200
    await slow.push.set(headers={"slow": "1"})
    fast = await bus.create_consumer("orders", "fast")
    await fast.push.set(endpoint.url)
    await bus.publish_many("orders", [postbus.Message(key=f"k.{n}", data=n) for n in range(300)])

    async with sending(fresh_url, grace=0):
        await eventually(lambda: is_done(fast), "the fast one is done", 10)
        assert (await slow.stats()).in_flight > 0


async def test_a_stop_finishes_what_is_on_its_way_and_gives_back_the_rest(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, concurrency=3)
    endpoint.delay = 0.5
    await bus.publish_many("orders", [postbus.Message(key=f"k.{n}", data=n) for n in range(20)])

    async with sending(fresh_url):
        await eventually(lambda: endpoint.open_count == 3, "three are on their way")
    stats = await consumer.stats()
    assert (stats.in_flight, stats.backlog) == (0, 17)
    assert endpoint.most_open == 3
    endpoint.delay = 0.0
    async with sending(fresh_url):
        await eventually(lambda: is_done(consumer), "the rest is sent")
    assert {each.attempt for each in endpoint.requests} == {1}


async def test_the_rate_holds_for_all_processes_together(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, max_rate=20)
    await bus.publish_many("orders", [postbus.Message(key=f"k.{n}", data=n) for n in range(50)])
    loop = asyncio.get_running_loop()

    async with sending(fresh_url), sending(fresh_url):
        await eventually(lambda: endpoint.requests, "it begins")
        started = loop.time()
        await eventually(lambda: is_done(consumer), "all are sent", 20)
        # Twenty at once, then twenty in a second.
        assert 1.3 < loop.time() - started < 6
    assert len(endpoint.requests) == 50


async def test_an_address_that_is_not_allowed_pauses_the_endpoint_and_loses_nothing(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint)
    await bus.publish("orders", key="a", data=1)
    async with sending(fresh_url, allowed=()):
        await eventually(lambda: has_state(consumer, "paused"), "it is paused")
    assert "127.0.0.1" in ((await consumer.push.info()).reason or "")
    assert endpoint.requests == []
    await consumer.push.resume()
    async with sending(fresh_url):
        await eventually(lambda: is_done(consumer), "it is sent")
    assert [each.attempt for each in endpoint.requests] == [1]


async def test_large_messages_of_many_endpoints_are_sent_though_few_fit_into_memory(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    await bus.create_stream("orders", partitions=1)
    consumers = [await bus.create_consumer("orders", f"hook-{n}", order="none") for n in range(5)]
    for consumer in consumers:
        await consumer.push.set(endpoint.url)
    await bus.publish_many("orders", [postbus.Message(data="x" * 100_000) for _ in range(10)])

    async with await postbus.connect_async(fresh_url, pool_size=4, upkeep=False) as own:
        service = PushService(own, Guard(["127.0.0.0/8"]), most_bytes=150_000)
        service.start()
        for consumer in consumers:
            await eventually(lambda consumer=consumer: is_done(consumer), "all are sent", 30)  # type: ignore[misc]
        assert not service._budget.is_full
        assert service._budget._held_bytes == 0
        await service.stop()
    assert len(endpoint.requests) == 50


async def test_an_endpoint_that_fails_now_and_then_handles_the_messages_of_a_key_in_order(
    bus: postbus.AsyncBus, fresh_url: str, endpoint: Receiver
) -> None:
    consumer = await pushed(bus, endpoint, concurrency=8, retry_schedule=[0.05])
    chance = random.Random(7)
    handled: dict[str | None, list[int]] = {}

    def answer(request: Received) -> int:
        if chance.random() < 0.15:
            return 500
        handled.setdefault(request.key, []).append(request.seq)
        return 200

    endpoint.answer = answer
    seqs = await bus.publish_many("orders", [postbus.Message(key=f"k.{n % 40}", data=n) for n in range(600)])

    async with sending(fresh_url), sending(fresh_url):
        await eventually(lambda: is_done(consumer), "all are handled", 60)

    assert all(found == sorted(found) for found in handled.values())
    assert sorted(seq for found in handled.values() for seq in found) == seqs

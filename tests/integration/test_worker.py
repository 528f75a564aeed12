"""A worker: what becomes of messages by what their handler does, in threads and in tasks."""

from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Delivery, Message, Reject, Retry
from tests.integration.workers import Seen, assert_empty, once, publish

# Nothing here depends on the version of the server.
pytestmark = pytest.mark.parametrize("server", ["pg18"], indirect=True)


@pytest.fixture
async def consumer(bus: Any, stream: str) -> Any:
    return await bus.create_consumer(stream, "c")


@pytest.mark.parametrize("order", ["key", "none", "partition"])
async def test_every_message_is_handled_once_and_acked(bus: Any, stream: str, order: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    await publish(bus, stream, *(f"k{n % 30}" for n in range(1000)))
    seen = Seen()

    summary = await consumer.run(seen, concurrency=4, stop_when_empty=True)

    assert sorted(seen.numbers) == list(range(1, 1001))
    assert summary == postbus.WorkSummary(acked_count=1000)
    await assert_empty(consumer)


async def test_an_async_handler_is_awaited(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        consumer = await bus.create_consumer(name, "c")
        await publish(bus, name, "a", "b", None)
        seen = []

        async def handle(delivery: Delivery) -> None:
            await asyncio.sleep(0.001)
            seen.append(delivery.data)

        assert (await consumer.run(handle, concurrency=2, stop_when_empty=True)).acked_count == 3
        assert sorted(seen) == [1, 2, 3]


@pytest.mark.parametrize("order", ["key", "partition"])
async def test_messages_of_a_key_are_handled_one_after_the_other(bus: Any, stream: str, order: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    await publish(bus, stream, *(f"k{n % 10}" for n in range(200)))
    running: Counter[Any] = Counter()
    together: list[Any] = []

    def then(delivery: Delivery) -> None:
        running[delivery.key] += 1
        if running[delivery.key] > 1:
            together.append(delivery.key)
        time.sleep(random.uniform(0, 0.002))
        running[delivery.key] -= 1

    seen = Seen(then)
    summary = await consumer.run(seen, concurrency=8, stop_when_empty=True)

    assert summary.acked_count == 200
    assert together == []
    by_key: dict[Any, list[int]] = {}
    for delivery in seen.deliveries:
        by_key.setdefault(delivery.key, []).append(delivery.data)
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


async def test_other_keys_are_handled_while_one_takes_long(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, *["slow"] * 3, *(f"k{n}" for n in range(10)))
    others = threading.Event()
    handled: list[Any] = []

    def handle(delivery: Delivery) -> None:
        if delivery.data == 1:
            assert others.wait(20)
        handled.append(delivery.key)
        if len(handled) == 10:
            others.set()

    await consumer.run(handle, concurrency=2, stop_when_empty=True)
    assert handled[10:] == ["slow"] * 3


async def test_an_exception_gives_the_message_back_and_at_last_makes_it_a_dead_letter(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", max_deliver=2)
    await publish(bus, stream, "a")

    def handle(delivery: Delivery) -> None:
        raise ValueError("no\0 good \ud800" + "x" * 5000)

    summary = await consumer.run(handle, backoff=[0], stop_when_empty=True)

    assert summary == postbus.WorkSummary(failed_count=2)
    (dead,) = await consumer.dead_letters()
    assert dead.attempts == 2
    assert dead.reason.startswith("ValueError: no good ?xxx")
    assert len(dead.reason) == 1000


@pytest.mark.parametrize(("setting", "least", "most"), [((), 0.7, 2), ([50], 49, 51)])
async def test_a_failed_message_waits_as_the_consumer_says_or_else_a_second_at_first(
    bus: Any, stream: str, setting: Any, least: float, most: float
) -> None:
    consumer = await bus.create_consumer(stream, "c", backoff=setting)
    await publish(bus, stream, "a")
    failed_at: list[datetime] = []

    def handle(delivery: Delivery) -> None:
        failed_at.append(datetime.now(UTC))
        raise ValueError

    await consumer.run(handle, stop_when_empty=True)

    (message,) = await consumer.peek()
    assert (message.state, message.reason) == ("waiting", "ValueError")
    # The lower bound is a promise, the upper one only tells a second from a minute.
    assert timedelta(seconds=least) <= message.until - failed_at[0] <= timedelta(seconds=most + 10)


async def test_retry_says_when_the_message_is_redelivered(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, "a", "b")
    seen = Seen(once(Retry("busy", delay=0)))
    summary = await consumer.run(seen, stop_when_empty=True)
    assert sorted(seen.attempts) == [(1, 1), (1, 2), (2, 1)]
    assert (summary.acked_count, summary.failed_count) == (2, 1)


async def test_reject_makes_a_dead_letter_and_the_key_continues(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, "a", "a", "a")
    seen = Seen(once(Reject("not for us"), number=2))
    summary = await consumer.run(seen, prefetch=10, stop_when_empty=True)
    assert seen.numbers == [1, 2, 3]
    assert [(dead.data, dead.reason) for dead in await consumer.dead_letters()] == [(2, "not for us")]
    assert (summary.acked_count, summary.rejected_count) == (2, 1)


@pytest.mark.parametrize("order", ["key", "partition"])
async def test_messages_behind_a_failed_one_are_redelivered_after_it(bus: Any, stream: str, order: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    await publish(bus, stream, *"aaaaaa")
    seen = Seen(once(Retry(delay=0), number=3))

    summary = await consumer.run(seen, concurrency=8, stop_when_empty=True)

    assert seen.numbers == [1, 2, 3, 3, 4, 5, 6]
    assert (summary.acked_count, summary.failed_count) == (6, 1)
    await assert_empty(consumer)


async def test_messages_behind_a_dead_letter_are_handled_at_once(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", max_deliver=1)
    await publish(bus, stream, *"aaaa")
    seen = Seen(once(ValueError(), number=2))
    summary = await consumer.run(seen, concurrency=8, stop_when_empty=True)
    assert seen.attempts == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert (summary.acked_count, summary.failed_count) == (3, 1)


async def test_a_dead_letter_that_holds_its_key_holds_messages_in_the_worker(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", on_dead="hold")
    await publish(bus, stream, *"aaaa")
    seen = Seen(once(Reject(), number=2))
    await consumer.run(seen, concurrency=8, stop_when_empty=True)
    assert seen.numbers == [1, 2]


async def test_handlers_and_settings_that_cannot_work_are_refused(url: str, name: str) -> None:
    async def handle(delivery: Delivery) -> None: ...

    with postbus.connect(url) as bus:
        with pytest.raises(postbus.InvalidInput, match="connect_async"):
            bus.consumer(name, "c").run(handle)
        with pytest.raises(postbus.InvalidInput, match="concurrency"):
            bus.consumer(name, "c").run(Seen(), concurrency=0)
    async with await postbus.connect_async(url) as async_bus:
        with pytest.raises(postbus.InvalidInput, match="has to be async"):
            await async_bus.consumer(name, "c").run(Seen(), transaction=True)


def test_the_snippets_of_the_how_to_run(fresh_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "run-a-worker.md"
    charged: list[int] = []
    with postbus.connect(fresh_url) as bus, psycopg.connect(fresh_url, autocommit=True) as connection:
        connection.execute("create table invoice (id bigint primary key, amount integer)")
        bus.create_stream("orders")
        for consumer in ("billing", "shipping", "books"):
            bus.create_consumer("orders", consumer)
        bus.create_consumer("orders", "labels", order="none")
        bus.publish_many("orders", [Message(key="a", data={"amount": amount}) for amount in (5, -1, 7)])
        scope: dict[str, Any] = {"url": fresh_url, "charge": lambda key, amount: charged.append(amount)}
        labels: set[int] = set()
        scope["print_label"] = lambda seq, number: labels.add(seq)

        for snippet in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
            exec(snippet, scope)

        assert charged == [5, 7]
        assert capsys.readouterr().out == "2 0 1\n"
        assert (len(labels), scope["printed"].deferred_count, scope["printed"].acked_count) == (3, 3, 0)
        assert (scope["shipped"].acked_count, scope["booked"].acked_count) == (3, 3)
        assert connection.execute("select sum(amount) from invoice").fetchone() == (11,)
        scope["bus"].close()

"""A worker: what becomes of messages by what their handler does, in threads and in tasks."""

from __future__ import annotations

import asyncio
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Delivery, Message, Reject, Retry

# Nothing here depends on the version of the server.
pytestmark = pytest.mark.parametrize("server", ["pg18"], indirect=True)


async def publish(bus: Any, stream: str, *keys: str | None) -> None:
    """A message for each key; its data is its number, from 1."""
    await bus.publish_many(stream, [Message(key=key, data=n) for n, key in enumerate(keys, start=1)])


def worker_of(consumer: Any, handler: Callable[..., Any], **settings: Any) -> Any:
    """A worker of either kind, whose run can be awaited."""
    if isinstance(consumer, postbus.AsyncConsumer):
        return postbus.AsyncWorker(consumer, handler, **settings)
    return postbus.Worker(consumer._consumer, handler, **settings)


async def run(worker: Any) -> Any:
    return await (worker.run() if isinstance(worker, postbus.AsyncWorker) else asyncio.to_thread(worker.run))


class Seen:
    """A handler that keeps what it was called with, and then does what it is told."""

    def __init__(self, then: Callable[[Delivery], None] = lambda delivery: None) -> None:
        self.deliveries: list[Delivery] = []
        self._then = then

    def __call__(self, delivery: Delivery, *_: Any) -> None:
        self.deliveries.append(delivery)
        self._then(delivery)

    @property
    def numbers(self) -> list[int]:
        return [delivery.data for delivery in self.deliveries]

    @property
    def attempts(self) -> list[tuple[int, int]]:
        return [(delivery.data, delivery.attempt) for delivery in self.deliveries]


def once(error: Exception, number: int = 1) -> Callable[[Delivery], None]:
    """Raises for one message, the first time."""

    def then(delivery: Delivery) -> None:
        if (delivery.data, delivery.attempt) == (number, 1):
            raise error

    return then


async def assert_empty(consumer: Any) -> None:
    stats = await consumer.stats()
    assert (stats.lag_estimate, stats.in_flight, stats.waiting) == (0, 0, 0)


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


async def test_retry_says_when_the_message_comes_again(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, "a", "b")
    seen = Seen(once(Retry("busy", delay=0)))
    summary = await consumer.run(seen, stop_when_empty=True)
    assert sorted(seen.attempts) == [(1, 1), (1, 2), (2, 1)]
    assert (summary.acked_count, summary.failed_count) == (2, 1)


async def test_reject_makes_a_dead_letter_and_the_key_goes_on(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, "a", "a", "a")
    seen = Seen(once(Reject("not for us"), number=2))
    summary = await consumer.run(seen, prefetch=10, stop_when_empty=True)
    assert seen.numbers == [1, 2, 3]
    assert [(dead.data, dead.reason) for dead in await consumer.dead_letters()] == [(2, "not for us")]
    assert (summary.acked_count, summary.rejected_count) == (2, 1)


@pytest.mark.parametrize("order", ["key", "partition"])
async def test_what_comes_behind_a_failed_message_comes_again_behind_it(bus: Any, stream: str, order: str) -> None:
    consumer = await bus.create_consumer(stream, "c", order=order)
    await publish(bus, stream, *"aaaaaa")
    seen = Seen(once(Retry(delay=0), number=3))

    summary = await consumer.run(seen, concurrency=8, stop_when_empty=True)

    assert seen.numbers == [1, 2, 3, 3, 4, 5, 6]
    assert (summary.acked_count, summary.failed_count) == (6, 1)
    await assert_empty(consumer)


async def test_what_comes_behind_a_message_that_died_is_handled_at_once(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", max_deliver=1)
    await publish(bus, stream, *"aaaa")
    seen = Seen(once(ValueError(), number=2))
    summary = await consumer.run(seen, concurrency=8, stop_when_empty=True)
    assert seen.attempts == [(1, 1), (2, 1), (3, 1), (4, 1)]
    assert (summary.acked_count, summary.failed_count) == (3, 1)


async def test_a_dead_letter_that_holds_its_key_holds_what_is_in_the_worker(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", on_dead="hold")
    await publish(bus, stream, *"aaaa")
    seen = Seen(once(Reject(), number=2))
    await consumer.run(seen, concurrency=8, stop_when_empty=True)
    assert seen.numbers == [1, 2]


async def test_heartbeats_keep_what_runs_and_what_waits(bus: Any, stream: str) -> None:
    consumer = await bus.create_consumer(stream, "c", ack_wait=0.6)
    await publish(bus, stream, *"aab")
    seen = Seen(lambda delivery: time.sleep(0.7))
    runs = [consumer.run(seen, concurrency=8, stop_when_empty=True) for _ in range(2)]

    summaries = await asyncio.gather(*runs)

    assert sorted(seen.attempts) == [(1, 1), (2, 1), (3, 1)]
    assert sum(summary.acked_count for summary in summaries) == 3


async def test_a_handler_that_blocks_the_event_loop_does_not_stop_heartbeats(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        consumer = await bus.create_consumer(name, "c", ack_wait=0.6)
        await publish(bus, name, "a")
        stolen: list[Delivery] = []

        async def handle(delivery: Delivery) -> None:
            with postbus.connect(url) as other:  # It blocks, as no async handler should.
                stolen.extend(other.consumer(name, "c").receive(wait=1.2))

        summary = await consumer.run(handle, stop_when_empty=True)
        assert (stolen, summary.acked_count) == ([], 1)


async def test_a_handler_that_hangs_has_failed_at_its_deadline(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, "a", "a", "b")
    release = threading.Event()

    def then(delivery: Delivery) -> None:
        if (delivery.data, delivery.attempt) == (1, 1):
            release.wait(30)

    seen = Seen(then)

    summary = await consumer.run(seen, handler_timeout=0.2, backoff=[0], stop_when_empty=True)
    release.set()

    assert [number for number in seen.numbers if number != 3] == [1, 1, 2]
    assert (summary.acked_count, summary.failed_count) == (3, 1)
    await assert_empty(consumer)


async def test_an_async_handler_is_cancelled_at_its_deadline(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        consumer = await bus.create_consumer(name, "c", max_deliver=1)
        await publish(bus, name, "a")
        cancelled = []

        async def handle(delivery: Delivery) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(delivery.data)
                raise

        await consumer.run(handle, handler_timeout=0.1, stop_when_empty=True)
        assert cancelled == [1]
        assert [dead.reason for dead in await consumer.dead_letters()] == ["the handler took longer than 0.1 s"]


async def test_an_empty_stream_is_left_at_once(consumer: Any) -> None:
    assert await consumer.run(Seen(), stop_when_empty=True) == postbus.WorkSummary()


async def test_a_waiting_worker_handles_what_is_published(bus: Any, stream: str, consumer: Any) -> None:
    worker = worker_of(consumer, Seen(lambda delivery: worker.stop() if delivery.data == 3 else None))
    running = asyncio.create_task(run(worker))
    for number in range(1, 4):
        await asyncio.sleep(0.1)  # So that it waits.
        await bus.publish(stream, key="a", data=number)
    assert (await running).acked_count == 3
    await assert_empty(consumer)


async def test_a_stop_lets_run_what_runs_and_gives_back_the_rest(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, *(f"k{n}" for n in range(500)))
    # By then it has taken more than it handles at the same time.
    seen = Seen(lambda delivery: worker.stop() if len(seen.deliveries) == 50 else time.sleep(0.002))
    worker = worker_of(consumer, seen, concurrency=4)

    summary = await run(worker)

    assert 50 <= summary.acked_count == len(seen.deliveries) < 500
    assert (await consumer.stats()).in_flight == 0
    rest: list[int] = []
    while batch := await consumer.receive(1000, ack_wait=30):
        rest += [delivery.data for delivery in batch]
        assert {delivery.attempt for delivery in batch} == {1}  # They were not tried, so that does not count.
        await consumer.ack(batch)
    assert sorted(seen.numbers + rest) == list(range(1, 501))


async def test_what_does_not_end_within_the_grace_is_given_back(bus: Any, stream: str, consumer: Any) -> None:
    await publish(bus, stream, "a")
    release = threading.Event()

    def handle(delivery: Delivery) -> None:
        worker.stop()
        release.wait(30)

    worker = worker_of(consumer, handle, grace=0.1)
    summary = await run(worker)
    (again,) = await consumer.receive(wait=5)
    release.set()

    assert (again.attempt, summary) == (2, postbus.WorkSummary())
    (peeked,) = await consumer.peek()
    assert peeked.state == "delivered"


async def test_cancelling_a_run_stops_it_in_order(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        consumer = await bus.create_consumer(name, "c")
        await publish(bus, name, "a")
        started, may_end = asyncio.Event(), asyncio.Event()

        async def handle(delivery: Delivery) -> None:
            started.set()
            await may_end.wait()

        task = asyncio.create_task(consumer.run(handle))
        await started.wait()
        task.cancel()
        await asyncio.sleep(0)
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await consumer.peek() == []


async def test_a_worker_ends_with_its_consumer(bus: Any, stream: str, consumer: Any) -> None:
    running = asyncio.create_task(consumer.run(Seen()))
    await asyncio.sleep(0.1)
    await consumer.drop()
    with pytest.raises(postbus.NotFound):
        await running


@pytest.fixture
def effects(sql: psycopg.Connection[Any], name: str) -> Callable[[], list[int]]:
    """Makes a table for what handlers do; called, what is in it."""
    sql.execute(f'create table "{name}" (number integer)'.encode())
    return lambda: [row[0] for row in sql.execute(f'select number from "{name}" order by 1'.encode())]


def writing(bus: Any, name: str, then: Callable[[Delivery], None] = lambda delivery: None) -> Callable[..., Any]:
    """A handler that writes a message's number on its connection, and then does something."""
    statement = f'insert into "{name}" values (%s)'.encode()

    def write(delivery: Delivery, connection: Any) -> None:
        connection.execute(statement, (delivery.data,))
        then(delivery)

    async def write_async(delivery: Delivery, connection: Any) -> None:
        await connection.execute(statement, (delivery.data,))
        await asyncio.to_thread(then, delivery)

    return write_async if isinstance(bus, postbus.AsyncBus) else write


async def test_in_a_transaction_what_the_handler_wrote_commits_with_the_ack(
    bus: Any, stream: str, consumer: Any, effects: Any
) -> None:
    await publish(bus, stream, "a", "b", "a")
    handler = writing(bus, stream, once(Retry(delay=0)))

    summary = await consumer.run(handler, transaction=True, concurrency=2, stop_when_empty=True)

    assert effects() == [1, 2, 3]
    assert (summary.acked_count, summary.failed_count) == (3, 1)
    await assert_empty(consumer)


async def test_the_transaction_of_a_handler_that_took_too_long_is_rolled_back(
    bus: Any, stream: str, consumer: Any, effects: Any
) -> None:
    await publish(bus, stream, "a")
    release = threading.Event()

    def then(delivery: Delivery) -> None:
        if delivery.attempt == 1:
            release.wait(30)

    handler = writing(bus, stream, then)
    summary = await consumer.run(handler, transaction=True, handler_timeout=0.2, backoff=[0], stop_when_empty=True)
    release.set()

    assert effects() == [1]
    assert (summary.acked_count, summary.failed_count) == (1, 1)


async def test_a_lease_that_ends_while_the_handler_runs_rolls_its_transaction_back(
    bus: Any, stream: str, consumer: Any, effects: Any, url: str
) -> None:
    await publish(bus, stream, "a")
    stolen: list[Delivery] = []

    def then(delivery: Delivery) -> None:
        with postbus.connect(url) as other:
            thief = other.consumer(stream, "c")
            thief.extend(delivery.ack_id, ack_wait=0.001, shorten=True)
            stolen.extend(thief.receive(wait=10, ack_wait=60))
        worker.stop()

    # One slot, which is taken: with a free one the worker may receive the message again itself, before the thief does.
    worker = worker_of(consumer, writing(bus, stream, then), transaction=True, concurrency=1)
    summary = await run(worker)

    assert [(delivery.data, delivery.attempt) for delivery in stolen] == [(1, 2)]
    assert effects() == []
    assert summary == postbus.WorkSummary(lost_count=1)
    assert await consumer.ack(stolen) == 1


async def test_what_waits_behind_a_lost_message_is_not_begun(
    bus: Any, stream: str, consumer: Any, effects: Any, url: str
) -> None:
    await publish(bus, stream, "a", "a")
    begun: list[int] = []

    def then(delivery: Delivery) -> None:
        begun.append(delivery.data)
        if len(begun) == 1:
            with postbus.connect(url) as other:
                other.consumer(stream, "c").seek("earliest")  # Whatever is in flight is given up, and comes again.

    handler = writing(bus, stream, then)
    summary = await consumer.run(handler, transaction=True, concurrency=2, stop_when_empty=True)

    # A receive at the moment of the seek may bring 1 once more for nothing; 2 begins only when 1 is through.
    assert begun == [1] * (len(begun) - 1) + [2]
    assert effects() == [1, 2]
    assert summary.acked_count == 2
    assert summary.lost_count >= 1


async def test_a_handler_whose_lease_ends_is_cancelled_and_its_outcome_ignored(url: str, name: str) -> None:
    async with await postbus.connect_async(url) as bus:
        await bus.create_stream(name)
        consumer = await bus.create_consumer(name, "c", ack_wait=0.5)
        await publish(bus, name, "a")

        async def handle(delivery: Delivery) -> None:
            await consumer.seek("latest")  # Whatever is in flight is given up.
            await asyncio.Event().wait()

        summary = await consumer.run(handle, stop_when_empty=True)
        assert summary == postbus.WorkSummary(lost_count=1)


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
        bus.publish_many("orders", [Message(key="a", data={"amount": amount}) for amount in (5, -1, 7)])
        scope: dict[str, Any] = {"url": fresh_url, "charge": lambda key, amount: charged.append(amount)}

        for snippet in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
            exec(snippet, scope)

        assert charged == [5, 7]
        assert capsys.readouterr().out == "2 0 1\n"
        assert (scope["shipped"].acked_count, scope["booked"].acked_count) == (3, 3)
        assert connection.execute("select sum(amount) from invoice").fetchone() == (11,)
        scope["bus"].close()


@pytest.mark.timeout(20)
def test_a_signal_that_another_thread_takes_stops_the_worker_too(url: str, name: str) -> None:
    with postbus.connect(url) as bus:
        bus.create_stream(name)
        consumer = bus.create_consumer(name, "c")
        bus.publish(name, data=1)

        def handle(delivery: Delivery) -> None:
            # Long enough for the main thread to sleep, which such a signal does not wake.
            time.sleep(0.2)
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

        assert consumer.run(handle).acked_count == 1

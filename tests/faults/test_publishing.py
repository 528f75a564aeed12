"""What publishers were told stays true when they, their connections or the server are killed."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, get_args

import pytest

import postbus
from tests.buses import AwaitableBus
from tests.faults.backend_terminator import BackendTerminator
from tests.faults.endings import ENDINGS
from tests.faults.ledger import Ledger, is_whole
from tests.faults.proxy import Moment, Proxy
from tests.faults.publish_batches import batch
from tests.faults.publishers import BatchProcess, Publisher
from tests.waiting import until

BATCH_SIZE = 1000


def test_a_killed_publisher_leaves_whole_batches(own_url: str) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    with postbus.connect(own_url) as bus:
        for round_number in range(1, 5):
            stream = f"round-{round_number}"
            bus.create_stream(stream)
            process = BatchProcess(own_url, stream, batch_size=BATCH_SIZE)
            process.wait_for(3)
            time.sleep(chance.uniform(0, 0.05))

            process.kill()

            batches = batches_of(settled(bus, stream))
            assert [n for n, places in batches.items() if not is_whole(places, BATCH_SIZE)] == [], f"seed {seed}"
            # The one under way when it was killed may have made it.
            assert list(batches) in (process.published, [*process.published, len(process.published) + 1]), (
                f"seed {seed}"
            )


def test_a_publisher_whose_backend_is_ended_leaves_whole_batches_and_continues(own_url: str, orders: str) -> None:
    published: list[int] = []
    unknown: list[int] = []
    with postbus.connect(own_url, pool_size=1) as bus, BackendTerminator(own_url) as terminator:
        while len(unknown) < 5:
            number = len(published) + len(unknown) + 1
            assert number < 2000, "nothing was ever lost"
            if len(published) % 3 == 2:
                terminator.arm()
            try:
                bus.publish_many(orders, batch(number, BATCH_SIZE))
                published.append(number)
            except postbus.ConnectionLost:
                unknown.append(number)

        batches = batches_of(settled(bus, orders))

    assert [n for n, places in batches.items() if not is_whole(places, BATCH_SIZE)] == []
    assert set(published) <= set(batches) <= {*published, *unknown}


@pytest.mark.parametrize("how", ENDINGS)
def test_a_server_that_ends_under_publishers_keeps_what_it_confirmed_and_they_continue(
    own_url: str, orders: str, end_server: Callable[[str], None], how: str
) -> None:
    # Half of them wait for the server to come back, half give up at once.
    publishers = [
        Publisher(own_url, orders, name=f"publisher{n}", connect_timeout=0.5 if n % 2 else 30) for n in range(8)
    ]
    for publisher in publishers:
        publisher.start()
    for ending in range(1, 10):
        wait_for_more(publishers)
        end_server(how)
        # As a rule some were under way at the first ending already.
        if ending >= 2 and any(publisher.ledger.unknown for publisher in publishers):
            break
    wait_for_more(publishers)

    ledger = Ledger()
    for publisher in publishers:
        ledger.add(publisher.stop())

    assert ledger.refused
    assert ledger.unknown
    with postbus.connect(own_url) as bus:
        messages = settled(bus, orders)
    ledger.settle(messages)
    for publisher in publishers:
        numbers = [int(m.data.partition("-")[2]) for m in messages if m.key == publisher.name]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("how", ENDINGS)
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_connection_that_died_in_the_pool_is_replaced_unnoticed(
    own_url: str, orders: str, end_server: Callable[[str], None], kind: str, how: str
) -> None:
    async with connected(kind, own_url) as bus:
        first = await bus.publish(orders, data=1)

        end_server(how)
        second = await bus.publish(orders, data=2)
        end_server(how)
        page = await bus.read(orders)

    assert [message.seq for message in page] == [first, second]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("many", [False, True], ids=["publish", "publish_many"])
async def test_a_connection_cut_before_the_answer_leaves_the_message_there_once(
    own_url: str, orders: str, kind: str, many: bool
) -> None:
    with Proxy(own_url) as proxy:
        async with connected(kind, proxy.url) as bus:
            # Twice, so that all statements are prepared.
            await publish(bus, orders, 1, many=many)
            await publish(bus, orders, 2, many=many)

            proxy.cut("before the answer arrives")
            with pytest.raises(postbus.ConnectionLost) as lost:
                await publish(bus, orders, 3, many=many)
            await publish(bus, orders, 4, many=many)

            assert lost.value.hint == "the call may or may not have taken effect"
            assert [message.data for message in await bus.read(orders)] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("many", [False, True], ids=["publish", "publish_many"])
async def test_a_connection_cut_before_the_request_leaves_no_message(
    own_url: str, orders: str, kind: str, many: bool
) -> None:
    with Proxy(own_url) as proxy:
        async with connected(kind, proxy.url) as bus:
            await publish(bus, orders, 1, many=many)

            proxy.cut("before the request arrives")
            with pytest.raises(postbus.ConnectionLost):
                await publish(bus, orders, 2, many=many)
            await publish(bus, orders, 3, many=many)

            assert [message.data for message in await bus.read(orders)] == [1, 3]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("moment", get_args(Moment))
async def test_a_read_over_a_connection_that_is_cut_is_repeated_unnoticed(
    own_url: str, orders: str, kind: str, moment: Moment
) -> None:
    with Proxy(own_url) as proxy:
        async with connected(kind, proxy.url) as bus:
            await bus.publish(orders, data=1)
            await bus.read(orders)

            proxy.cut(moment)

            assert [message.data for message in await bus.read(orders)] == [1]


async def publish(bus: Any, stream: str, data: int, *, many: bool) -> None:
    if many:
        await bus.publish_many(stream, [postbus.Message(data=data)])
    else:
        await bus.publish(stream, data=data)


@asynccontextmanager
async def connected(kind: str, url: str) -> AsyncIterator[Any]:
    """A bus to await, of either kind."""
    if kind == "async":
        async with await postbus.connect_async(url) as bus:
            yield bus
    else:
        with postbus.connect(url) as sync_bus:
            yield AwaitableBus(sync_bus)


def wait_for_more(publishers: list[Publisher]) -> None:
    """Wait until each publisher has published some more messages."""
    goals = [publisher.count + 20 for publisher in publishers]
    until(lambda: all(p.count >= goal for p, goal in zip(publishers, goals, strict=True)), "all publishers go on")


def settled(bus: postbus.Bus, stream: str) -> list[postbus.Message]:
    """All messages of a stream that nobody publishes to any more, once its last publishers' transactions have ended."""
    until(lambda: bus.horizon(stream) == bus.stream_info(stream).last_seq, "no publisher holds the horizon")
    return list(bus.scan(stream))


def batches_of(messages: Iterable[postbus.Message]) -> dict[int, list[int]]:
    """The places of each batch's messages, in the order of the stream."""
    batches: dict[int, list[int]] = defaultdict(list)
    for message in messages:
        number, place = message.data
        batches[number].append(place)
    return dict(batches)

"""Levels that are used first while others publish, receive, maintain and change the number of partitions."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message
from tests.integration.test_delivery_locks import change

pytestmark = pytest.mark.newest_server
_SECONDS = 3.0
_KEYS = [f"k{n}" for n in range(12)]


def in_threads(*programs: Callable[[], None]) -> None:
    """Run them side by side; the first error of one is raised."""
    errors: list[BaseException] = []

    def run(program: Callable[[], None]) -> None:
        try:
            program()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(program,), daemon=True) for program in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("order", ["key", "none"])
def test_every_message_comes_once_whatever_happens_at_once(url: str, name: str, order: Any) -> None:
    published: dict[int, tuple[str, int]] = {}
    received: list[tuple[int, str, int]] = []
    lock = threading.Lock()
    end = time.monotonic() + _SECONDS

    def publish(seed: int) -> None:
        chance = random.Random(seed)
        with postbus.connect(url, upkeep=False) as bus, psycopg.connect(url) as own:
            # One level more each moment: both publishers use it first at about the same time.
            while (left := end - time.monotonic()) > 0:
                levels = list(range(10))[: 1 + int(10 * (1 - left / _SECONDS))]
                messages = [
                    Message(key=chance.choice(_KEYS), data=None, priority=chance.choice(levels))
                    for _ in range(chance.randint(1, 5))
                ]
                kind = chance.random()
                if kind < 0.7:
                    seqs = bus.publish_many(name, messages)
                else:
                    # In a transaction that stays open for a moment, perhaps with an older snapshot, perhaps undone.
                    own.isolation_level = chance.choice([None, psycopg.IsolationLevel.REPEATABLE_READ])
                    own.execute("select 1")
                    time.sleep(chance.uniform(0, 0.01))
                    seqs = bus.publish_many(name, messages, connection=own)
                    time.sleep(chance.uniform(0, 0.01))
                    if kind > 0.95:
                        own.rollback()
                        continue
                    own.commit()
                with lock:
                    published.update(
                        {int(seq): (str(each.key), each.priority) for seq, each in zip(seqs, messages, strict=True)}
                    )

    def receive() -> None:
        with postbus.connect(url, upkeep=False) as bus:
            consumer = bus.consumer(name, "c")
            empty = 0
            while empty < 3:
                batch = consumer.receive(7)
                with lock:
                    received.extend((each.seq, str(each.key), each.priority) for each in batch)
                assert consumer.ack(batch) == len(batch)
                empty = 0 if batch or time.monotonic() < end + 0.5 else empty + 1

    def change() -> None:
        chance = random.Random(3)
        with postbus.connect(url, upkeep=False) as bus:
            while time.monotonic() < end:
                bus.alter_stream(name, partitions=chance.choice([1, 2, 3, 5]))
                for _ in range(3):
                    bus.maintain(name)
                    time.sleep(0.03)
            # Until all is known of: the stream's own functions, too.
            for _ in range(5):
                bus.maintain(name)

    with postbus.connect(url, upkeep=False) as bus:
        bus.create_stream(name, partitions=3)
        consumer = bus.create_consumer(name, "c", order=order, ack_wait=60)
        in_threads(lambda: publish(1), lambda: publish(2), receive, receive, change)
        while batch := consumer.receive(100):
            received += [(each.seq, str(each.key), each.priority) for each in batch]
            consumer.ack(batch)
        assert consumer.stats().backlog == 0
        assert Counter(seq for seq, _, _ in received) == Counter(list(published))
        assert {seq: (key, priority) for seq, key, priority in received} == published


def test_two_that_use_a_level_first_do_not_wait_for_each_other(url: str, name: str) -> None:
    with postbus.connect(url, upkeep=False) as bus, psycopg.connect(url) as one, psycopg.connect(url) as two:
        bus.create_stream(name)
        consumer = bus.create_consumer(name, "c")
        began = time.monotonic()
        bus.publish(name, key="a", data=1, priority=9, connection=one)
        bus.publish(name, key="b", data=2, priority=9, connection=two)
        bus.publish(name, key="c", data=3, priority=9)
        assert time.monotonic() - began < 1
        two.commit()
        one.commit()
        assert sorted(each.data for _ in range(3) for each in consumer.receive(3)) == [1, 2, 3]


def test_a_level_is_used_first_while_maintenance_is_at_work(url: str, name: str) -> None:
    """The publisher does not wait for it for long. Whoever comes next says that there are levels."""
    with postbus.connect(url, upkeep=False) as bus, psycopg.connect(url) as maintenance:
        bus.create_stream(name)
        consumer = bus.create_consumer(name, "c")
        bus.publish(name, key="a", data="default")
        maintenance.execute("select postbus.maintain(%s)", (name,))
        began = time.monotonic()
        bus.publish(name, key="b", data="urgent", priority=9)
        assert time.monotonic() - began < 1
        assert [each.data for each in consumer.receive(5)] == ["default"]
        maintenance.commit()
        bus.maintain(name)
        assert [each.data for each in consumer.receive(5)] == ["urgent"]


def test_a_level_that_is_used_first_during_a_change_of_partitions_is_read_to_its_end(url: str, name: str) -> None:
    with postbus.connect(url, upkeep=False) as bus, psycopg.connect(url) as late:
        bus.create_stream(name, partitions=2)
        consumer = bus.create_consumer(name, "c")
        bus.publish(name, key="a", data="first")
        # It has looked at the layout, and writes to the old partitions.
        bus.publish(name, key="a", data="late", priority=9, connection=late)
        bus.alter_stream(name, partitions=3)
        for _ in range(3):
            bus.maintain(name)
        bus.publish(name, key="a", data="new", priority=9)
        bus.publish(name, key="a", data="low", priority=1)
        found: list[Any] = []

        def receive() -> None:
            while batch := consumer.receive(5):
                found.extend(each.data for each in batch)
                consumer.ack(batch)

        receive()
        assert found == [] or found == ["first"]
        late.commit()
        for _ in range(3):
            bus.maintain(name)
            receive()
        assert found[-2:] == ["new", "low"]
        assert sorted(found[:2]) == ["first", "late"]


def test_messages_that_another_receiver_holds_do_not_wait_behind_lower_ones(fresh_url: str) -> None:
    # As on a busy machine, where the other one takes longer than this one would wait.
    change(fresh_url, "postbus_data.claim_batches", "interval '100 milliseconds'", "interval '1 minute'")
    with (
        postbus.connect(fresh_url, upkeep=False) as bus,
        psycopg.connect(fresh_url) as slow,
        ThreadPoolExecutor(1) as pool,
    ):
        bus.create_stream("s", partitions=2)
        consumer = bus.create_consumer("s", "c", order="none")
        here, there = (next(key for key in _KEYS if postbus.partition_of(key, 2) == place) for place in (0, 1))
        for number in range(3):
            bus.publish("s", key=here, data=f"default {number}")
        bus.publish("s", key=there, data="low", priority=1)
        bus.maintain("s")
        taken = consumer.receive(1, connection=slow)
        assert [each.data for each in taken] == ["default 0"]

        other = pool.submit(consumer.receive, 1)
        assert wait([other], timeout=0.5).done == set()
        slow.commit()

        assert [each.data for each in other.result()] == ["default 1"]

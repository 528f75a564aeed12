"""Very many of everything: what must not grow with them does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message
from tests.server.serving import serving

pytestmark = [pytest.mark.slow, pytest.mark.newest_server]

# As if consumers had given up all that the stream holds.
GIVE_UP = """
insert into postbus_data.dead_letter (consumer_id, seq, partition, key, data, published_at, attempts, reason)
select
    (select c.id from postbus_data.consumer as c), l.seq, l.partition, l.key, l.data::text, l.published_at, 1, 'no ' || l.seq % 7
from postbus_data.log_1_1 as l
"""


@pytest.fixture
def own(fresh_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(fresh_url, autocommit=True) as connection:
        yield connection


def test_a_sweep_of_five_thousand_idle_consumers_writes_nothing(fresh_url: str, own: psycopg.Connection[Any]) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        for number in range(5000):
            bus.create_consumer("orders", f"c{number}")
        bus.sweep()
        with own.transaction():
            own.execute("select postbus.sweep()")
            # Whoever writes has an id.
            assert own.execute("select pg_current_xact_id_if_assigned()").fetchone() == (None,)
        bus.publish("orders", key="k", data=1)
        for name in ("c0", "c4999"):
            consumer = bus.consumer("orders", name)
            assert consumer.ack(consumer.receive(10)) == 1
        assert len(bus.list_consumers("orders")) == 5000
    with serving(fresh_url) as api:
        assert api.get("/metrics").text.count("postbus_consumer_lag_messages{") == 5000


def test_a_thousand_streams_are_published_to_in_one_transaction_and_listed(
    fresh_url: str, own: psycopg.Connection[Any]
) -> None:
    names = [f"s{number:04}" for number in range(1000)]
    with postbus.connect(fresh_url) as bus:
        for name in names:
            bus.create_stream(name, partitions=1)
        with own.transaction():
            for name in names:
                own.execute("select postbus.publish(%s, 'k', '1')", (name,))
        bus.maintain()
        assert [each.name for each in bus.overview()] == names
        assert [each.last_seq for each in bus.list_streams()] == [1] * 1000


def test_dead_letters_are_moved_and_removed_in_steps_however_many(fresh_url: str, own: psycopg.Connection[Any]) -> None:
    total = 50_000
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        consumer = bus.create_consumer("orders", "billing", order="none")
        for start in range(0, total, 10_000):
            bus.publish_many("orders", [Message(key=f"k.{n % 1000}", data=n) for n in range(start, start + 10_000)])
        own.execute(GIVE_UP.encode())

        assert len(consumer.dead_letters(max_messages=10_000)) == 10_000
        assert consumer.redrive(key_pattern="k.7") == 50
        steps = list(consumer.redrive_steps())
        assert max(after - before for before, after in zip([0, *steps], steps, strict=False)) <= 1000
        assert steps[-1] == total - 50
        swept = [bus.sweep() for _ in range(6)]
        assert max(swept) <= 10_000
        assert sum(swept) == total
        own.execute(GIVE_UP.encode())
        assert consumer.discard(reason_like="no 3") + consumer.discard() == total


def test_a_million_dead_letters_are_redriven_at_once_in_steps_and_come_again(
    fresh_url: str, own: psycopg.Connection[Any]
) -> None:
    total = 1_000_000
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("orders")
        consumer = bus.create_consumer("orders", "billing", order="none")
        for start in range(0, total, 10_000):
            bus.publish_many("orders", [Message(key=f"k.{n % 1000}", data=n) for n in range(start, start + 10_000)])
        own.execute(GIVE_UP.encode())

        steps = list(consumer.redrive_steps())

        assert steps == list(range(1000, total + 1, 1000))
        assert consumer.dead_letters() == []
        assert own.execute("select count(*), count(distinct seq) from postbus_data.waiting").fetchone() == (
            total,
            total,
        )
        swept = 0
        while step := bus.sweep():
            assert step <= 10_000
            swept += step
        assert swept == total
        assert own.execute("select count(*), count(distinct seq) from postbus_data.due").fetchone() == (total, total)

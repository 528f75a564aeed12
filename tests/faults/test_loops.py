"""What a loop has acked is on disk when the loop has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message
from postbus.db._sync.database import Database
from tests.faults.endings import wait_until_up


def test_acks_of_a_loop_that_has_ended_outlive_a_crash(
    own_url: str, orders: str, end_server: Callable[[str], None]
) -> None:
    with psycopg.connect(own_url, autocommit=True) as connection:
        # The background writer would hide what is missing.
        connection.execute("alter system set wal_writer_delay = '10s'")
        connection.execute("select pg_reload_conf()")
    with postbus.connect(own_url) as bus:
        consumer = bus.create_consumer(orders, "c", order="none")
        bus.publish_many(orders, [Message(key=f"k{n}", data=n) for n in range(100)])
        assert sum(len(batch) for batch in consumer.batches(10, wait=0)) == 100
        end_server("killed")
    wait_until_up(own_url)

    with postbus.connect(own_url) as bus:
        stats = bus.consumer(orders, "c").stats()
        assert (stats.lag_estimate, stats.in_flight, stats.waiting) == (0, 0, 0)
        assert not bus.consumer(orders, "c").receive(100)


def test_all_but_the_last_batches_outlive_a_crash_within_a_loop(
    own_url: str, orders: str, end_server: Callable[[str], None]
) -> None:
    with psycopg.connect(own_url, autocommit=True) as connection:
        connection.execute("alter system set wal_writer_delay = '10s'")
        connection.execute("select pg_reload_conf()")
    done: list[list[int]] = []
    with postbus.connect(own_url) as bus:
        consumer = bus.create_consumer(orders, "c", order="none", ack_wait=1)
        bus.publish_many(orders, [Message(key=f"k{n}", data=n) for n in range(200)])
        batches = consumer.batches(10, wait=0)
        for _ in range(10):
            done.append([delivery.data for delivery in next(batches)])
        end_server("killed")
    wait_until_up(own_url)

    with postbus.connect(own_url) as bus:
        left = {d.data for batch in bus.consumer(orders, "c").batches(100, wait=3) for d in batch}
    # The batch in hand is not done, and the ack of the one before may not have been on disk.
    assert {n for batch in done[:-2] for n in batch}.isdisjoint(left)
    assert left | {n for batch in done for n in batch} == set(range(200))


@pytest.mark.parametrize("pool_size", [1, 4])
def test_a_server_that_crashes_between_an_ack_and_its_flush_does_not_confirm_the_ack(
    own_url: str, orders: str, end_server: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, pool_size: int
) -> None:
    with psycopg.connect(own_url, autocommit=True) as connection:
        connection.execute("alter system set wal_writer_delay = '10s'")
        connection.execute("select pg_reload_conf()")
    flush = Database.flush

    def crash_before_flush(*arguments: Any) -> Any:
        end_server("killed")
        wait_until_up(own_url)
        return flush(*arguments)

    with postbus.connect(own_url, pool_size=pool_size) as bus:
        consumer = bus.create_consumer(orders, "c", order="none", ack_wait=1)
        bus.publish_many(orders, [Message(key=f"k{n}", data=n) for n in range(20)])
        batches = consumer.batches(10, wait=0)
        next(batches)
        monkeypatch.setattr(Database, "flush", crash_before_flush)

        with pytest.raises(postbus.ConnectionLost, match="may not be on disk"):
            next(batches)

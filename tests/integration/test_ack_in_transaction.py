"""The handler's writes and the ack commit together, or neither does."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message


@pytest.fixture
def stage(url: str, name: str) -> Any:
    with postbus.connect(url) as bus:
        bus.create_stream(name, partitions=1)
        bus.publish_many(name, [Message(key="k", data=n) for n in range(4)])
        yield bus, bus.create_consumer(name, "c", order="none", ack_wait=0.3)


def test_an_ack_counts_when_the_callers_transaction_commits(stage: Any, connect: Any) -> None:
    _, consumer = stage
    batch = consumer.receive(4)
    handler = connect(autocommit=False)
    assert consumer.ack(batch, connection=handler) == 4
    handler.commit()
    assert list(consumer.receive(4, wait=0.6)) == []


def test_an_ack_that_is_rolled_back_leaves_the_delivery_as_it_was(stage: Any, connect: Any) -> None:
    _, consumer = stage
    batch = consumer.receive(4, ack_wait=30)
    handler = connect(autocommit=False)
    assert consumer.ack(batch, connection=handler) == 4
    handler.rollback()
    assert consumer.ack(batch) == 4


def test_a_lease_with_an_open_ack_is_not_given_to_others(stage: Any, connect: Any) -> None:
    _, consumer = stage
    batch = consumer.receive(4)
    handler = connect(autocommit=False)
    assert consumer.ack(batch[1], connection=handler) == 1
    assert list(consumer.receive(4, wait=0.8)) == []  # The lease has expired, and somebody is settling it.
    handler.commit()
    assert sorted(d.data for d in consumer.receive(4, wait=5)) == [0, 2, 3]


def test_two_open_acks_of_one_batch_and_a_heartbeat_do_not_wait_for_each_other(stage: Any, connect: Any) -> None:
    _, consumer = stage
    batch = consumer.receive(4, ack_wait=30)
    first, second, heartbeat = (connect(autocommit=False) for _ in range(3))
    for connection in (first, second, heartbeat):
        connection.execute("set local lock_timeout = '1s'")
    assert consumer.ack(batch[0], connection=first) == 1
    assert consumer.ack(batch[1], connection=second) == 1
    assert consumer.extend(batch, ack_wait=60, connection=heartbeat) == 4
    for connection in (first, second, heartbeat):
        connection.commit()
    assert consumer.ack(batch) == 2


def test_acks_of_the_same_message_count_once_whoever_commits(stage: Any, connect: Any) -> None:
    _, consumer = stage
    batch = consumer.receive(4, ack_wait=30)
    first = connect(autocommit=False)
    assert consumer.ack(batch[0], connection=first) == 1
    first.commit()
    assert consumer.nack(batch[0]) == 0


def test_a_receive_that_is_rolled_back_leaves_the_messages_and_their_count(stage: Any, connect: Any) -> None:
    _, consumer = stage
    worker = connect(autocommit=False)
    assert len(consumer.receive(4, connection=worker)) == 4
    worker.rollback()
    assert [d.attempt for d in consumer.receive(4)] == [1] * 4


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_receiving_and_acking_under_a_kept_snapshot_are_refused(
    stage: Any, connect: Any, name: str, level: str
) -> None:
    _, consumer = stage
    batch = consumer.receive(1, ack_wait=30)
    for statement in ("select * from postbus.receive(%s, 'c')", "select postbus.ack(%s, 'c', '{}')"):
        connection = connect(autocommit=False)
        connection.execute(f"set transaction isolation level {level}")
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(statement, (name,))
        assert caught.value.sqlstate == "PB412"
    assert consumer.ack(batch) == 1

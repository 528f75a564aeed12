"""A stream's own function for acks, which the library calls, does what postbus.ack does."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

import postbus
from postbus import Message
from tests.waiting import until


@pytest.fixture
def stage(url: str, name: str) -> Any:
    with postbus.connect(url) as bus:
        bus.create_stream(name, partitions=1)
        bus.publish_many(name, [Message(key="k", data=n) for n in range(4)])
        yield bus, bus.create_consumer(name, "c", order="none", ack_wait=30)


@pytest.fixture
def own(stage: Any, name: str) -> str:
    bus, _ = stage
    return f"postbus_data.ack_{bus.stream_info(name).id}"


@pytest.mark.parametrize("kind", ["own", "public"])
def test_what_was_settled_before_is_not_counted_again(stage: Any, own: str, connect: Any, name: str, kind: str) -> None:
    _, consumer = stage
    batch = consumer.receive(4)
    connection = connect()
    call = f"select {own if kind == 'own' else 'postbus.ack'}(%s, 'c', %s)"

    assert counted(connection, call, name, [batch[0].ack_id]) == 1
    assert counted(connection, call, name, [batch[0].ack_id]) == 0
    assert counted(connection, call, name, list(batch.leases)) == 3
    assert counted(connection, call, name, list(batch.leases)) == 0
    assert counted(connection, call, name, []) == 0
    with pytest.raises(psycopg.Error, match="not an ack id"):
        counted(connection, call, name, ["nonsense"])
    token = int.from_bytes(bytes.fromhex(batch.leases[0]), signed=True)
    assert connection.execute("select from postbus_data.settled where token = %s", (token,)).fetchall() == []


@pytest.mark.parametrize("kind", ["own", "public"])
def test_any_list_of_ack_ids_counts_each_delivery_once(
    stage: Any, own: str, connect: Any, name: str, kind: str
) -> None:
    """The own function takes a short way for a lease's messages in their order; all other lists come to the same."""
    bus, consumer = stage
    connection = connect()
    call = f"select {own if kind == 'own' else 'postbus.ack'}(%s, 'c', %s)"
    bus.publish_many(name, [Message(key="k", data=n) for n in range(16)])

    ids = [delivery.ack_id for delivery in consumer.receive(4)]
    assert counted(connection, call, name, ids) == 4
    assert counted(connection, call, name, ids) == 0
    ids = [delivery.ack_id for delivery in consumer.receive(4)]
    assert counted(connection, call, name, ids[::-1]) == 4
    first, second = consumer.receive(4), consumer.receive(4)
    ids = [delivery.ack_id for delivery in first]
    assert counted(connection, call, name, [ids[0], second[1].ack_id, ids[1]]) == 3
    assert counted(connection, call, name, [ids[2], ids[2], ids[2] + "0"]) == 1
    assert counted(connection, call, name, [*ids, *ids]) == 1
    assert counted(connection, call, name, [second[0].ack_id, second.leases[0], second[0].ack_id]) == 3
    (single,) = consumer.receive(1)
    assert counted(connection, call, name, [single.ack_id, single.ack_id]) == 1
    assert counted(connection, call, name, [single.ack_id]) == 0
    stats = consumer.stats()
    assert (stats.in_flight, stats.waiting, stats.lag_estimate) == (0, 0, 3)


def test_an_ack_of_a_lease_waits_for_an_open_ack_of_a_part_and_counts_the_rest(
    stage: Any, own: str, connect: Any, name: str
) -> None:
    _, consumer = stage
    batch = consumer.receive(4)
    part, whole = connect(autocommit=False), connect()
    assert consumer.ack(batch[0], connection=part) == 1
    counts: list[int] = []
    waiting = threading.Thread(
        target=lambda: counts.append(counted(whole, f"select {own}(%s, 'c', %s)", name, list(batch.leases)))
    )
    waiting.start()
    watcher = connect()
    until(
        lambda: watcher.execute(
            "select from pg_stat_activity where pid = %s and wait_event_type = 'Lock'", (whole.info.backend_pid,)
        ).fetchall(),
        "the second ack waits",
    )
    part.commit()
    waiting.join(10)

    assert counts == [3]
    assert consumer.ack(batch) == 0


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_kept_snapshot_is_refused_and_settles_nothing(
    stage: Any, own: str, connect: Any, name: str, level: str
) -> None:
    _, consumer = stage
    batch = consumer.receive(4)
    connection = connect(autocommit=False)
    connection.execute(f"set transaction isolation level {level}")
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(f"select {own}(%s, 'c', %s)", (name, list(batch.leases)))

    assert caught.value.sqlstate == "PB412"
    connection.rollback()
    assert consumer.ack(batch) == 4


def test_deliveries_of_another_consumer_or_before_a_seek_are_not_counted(stage: Any, name: str) -> None:
    bus, consumer = stage
    other = bus.create_consumer(name, "d", order="none")
    batch = consumer.receive(2)
    assert other.ack(batch) == 0
    consumer.seek("earliest")

    assert consumer.ack(batch) == 0
    assert [delivery.attempt for delivery in consumer.receive(4)] == [1] * 4


def test_an_unknown_consumer_is_refused_by_name(stage: Any, name: str) -> None:
    bus, _ = stage
    with pytest.raises(postbus.NotFound, match='consumer "x" of stream'):
        bus.consumer(name, "x").ack(["0" * 16])


def test_the_library_acks_by_the_streams_own_function_and_does_without_it(stage: Any, own: str, connect: Any) -> None:
    _, consumer = stage
    first, second = consumer.receive(2), consumer.receive(2)
    connection = connect()
    # So what works does not go this way.
    connection.execute(f"alter function {own} rename to gone")

    assert consumer.ack(first) == 2
    connection.execute(
        f"create function {own}(text, text, text[]) returns integer language sql security definer as 'select 77'"
    )
    assert consumer.ack(second) == 77


def test_a_stream_that_was_dropped_and_made_again_is_noticed(stage: Any, name: str, url: str) -> None:
    _, consumer = stage
    batch = consumer.receive(2)
    with postbus.connect(url) as other:
        other.drop_stream(name)
        with pytest.raises(postbus.NotFound, match="does not exist"):
            consumer.ack(batch)
        other.create_stream(name, partitions=1)
        other.create_consumer(name, "c")
        other.publish(name, key="k", data=1)

    assert consumer.ack(batch) == 0
    assert consumer.ack(consumer.receive(1)) == 1


def counted(connection: psycopg.Connection[Any], call: str, *values: Any) -> int:
    row = connection.execute(call.encode(), values).fetchone()
    assert row is not None
    return int(row[0])

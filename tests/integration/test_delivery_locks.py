"""Each lock of delivery is needed: with it a promise holds, and without it the same steps break it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import psycopg
import pytest

import postbus
from postbus import Message
from tests.waiting import until

_WAITING: Final = "select count(*) from pg_locks where locktype = 'advisory' and classid = 42 and not granted"
_BLOCKED: Final = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)
Connection = psycopg.Connection[Any]


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set lock_timeout = '300ms'")
        yield connection


def change(url: str, function: str, old: str, new: str) -> None:
    """Write a function anew with another text in one place."""
    with psycopg.connect(url, autocommit=True) as connection:
        schema, name = function.split(".")
        row = connection.execute(
            "select pg_get_functiondef(oid) from pg_proc where pronamespace = %s::regnamespace and proname = %s "
            "order by length(prosrc) desc limit 1",
            (schema, name),
        ).fetchone()
        assert row is not None
        assert row[0].count(old) == 1
        connection.execute(row[0].replace(old, new).encode())


def receive(connection: Connection, max_messages: int = 1) -> list[int]:
    rows = connection.execute("select d.seq from postbus.receive('s', 'c', %s) as d", (max_messages,)).fetchall()
    return [seq for (seq,) in rows]


@pytest.mark.parametrize("has_lock", [True, False])
def test_two_receives_of_a_partition(fresh_url: str, has_lock: bool) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("s", partitions=1)
        bus.create_consumer("s", "c", order="none")
        bus.publish_many("s", [Message(data=n) for n in range(4)])
    if not has_lock:
        lock = "pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), partition)"
        change(fresh_url, "postbus_data.claim_partition", lock, "true")

    with connected(fresh_url) as first, connected(fresh_url) as second, first.transaction():
        assert receive(first, 2) == [1, 2]
        if has_lock:
            assert receive(second, 2) == []
        else:
            # It sees the position as it was, takes the same messages, and meets the first only when it writes them down.
            with pytest.raises(psycopg.errors.LockNotAvailable):
                receive(second, 2)


@pytest.mark.parametrize("has_lock", [True, False])
def test_two_receives_near_max_ack_pending(fresh_url: str, has_lock: bool) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("s", partitions=2)
        consumer = bus.create_consumer("s", "c", order="none", max_ack_pending=1)
        bus.publish_many("s", [Message(data=n) for n in range(8)])
        if not has_lock:
            lock = "pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('count'))"
            change(fresh_url, "postbus_data.free_capacity", lock, "true")

        with connected(fresh_url) as first, connected(fresh_url) as second, first.transaction():
            assert len(receive(first)) == 1
            assert len(receive(second)) == (0 if has_lock else 1)
        assert consumer.stats().in_flight == (1 if has_lock else 2)


@pytest.mark.parametrize("has_lock", [True, False])
def test_two_sweeps(fresh_url: str, has_lock: bool) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c", order="none")
        bus.publish_many("s", [Message(data=n) for n in range(2)])
        consumer.nack(consumer.receive(1))
        if not has_lock:
            lock = "pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('sweep'))"
            change(fresh_url, "postbus_data.sweep_consumer", lock, "true")

        with connected(fresh_url) as first, connected(fresh_url) as second, first.transaction():
            assert first.execute("select postbus.sweep('s')").fetchone() == (1,)
            consumer.nack(consumer.receive(1))
            if has_lock:
                assert second.execute("select postbus.sweep('s')").fetchone() == (0,)
            else:
                # Both number their messages from the same one on.
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    second.execute("select postbus.sweep('s')")


@pytest.mark.parametrize("has_lock", [True, False])
def test_two_receives_of_the_redelivery_log(fresh_url: str, has_lock: bool) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c", order="none")
        bus.publish_many("s", [Message(data=n) for n in range(2)])
        consumer.nack(consumer.receive(2))
        bus.sweep("s")
    if not has_lock:
        lock = "pg_try_advisory_xact_lock(postbus_data.consumer_lock_class(reader.id), postbus_data.consumer_lock('redeliver'))"
        change(fresh_url, "postbus_data.claim_due", lock, "true")

    with connected(fresh_url) as first, connected(fresh_url) as second, first.transaction():
        assert receive(first) == [1]
        if has_lock:
            assert receive(second) == []
        else:
            with pytest.raises(psycopg.errors.LockNotAvailable):
                receive(second)


@pytest.mark.parametrize("has_lock", [True, False])
def test_an_ack_that_is_not_committed_when_the_lease_ends(fresh_url: str, has_lock: bool) -> None:
    with postbus.connect(fresh_url) as bus, connected(fresh_url) as handler:
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c", order="none", ack_wait=0.1)
        bus.publish_many("s", [Message(data=n) for n in range(2)])
        if not has_lock:
            change(fresh_url, "postbus_data.settle_messages", "for key share", "")

        with handler.transaction():
            batch = consumer.receive(2)
            assert consumer.ack(batch[0], connection=handler) == 1
            handler.execute("select pg_sleep(0.2)")
            bus.sweep("s")
        again = [d.seq for d in consumer.receive(2, wait=5)] + [d.seq for d in consumer.receive(2)]
        # The first message was acked, and that counted: it must not come again.
        assert (batch[0].seq in again) == (not has_lock)


@pytest.mark.parametrize("reads_leases_first", [True, False])
def test_a_nack_that_commits_while_keys_are_looked_at(fresh_url: str, reads_leases_first: bool) -> None:
    """Leases before failures. The other way round, a nack in between leaves its key looking free."""
    with postbus.connect(fresh_url) as bus, connected(fresh_url) as pauser, connected(fresh_url) as second:
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c", backoff=[60])
        bus.publish_many("s", [Message(key="k", data=n) for n in range(2)])
        first = consumer.receive(1)
        # The look at failures, and a pause between the two looks.
        look = "exists (select from postbus_data.waiting as w where w.consumer_id = reader.id and w.partition = place.partition)"
        pause = "pg_advisory_xact_lock_shared(42)"
        if reads_leases_first:
            change(
                fresh_url,
                "postbus_data.claim_by_key",
                "    if place.parked_from is not null\n",
                f"    perform {pause};\n    if place.parked_from is not null\n",
            )
        else:
            declared = "    in_flight text[];\n"
            begun = "    claim.blocked := null;\n"
            change(fresh_url, "postbus_data.claim_by_key", declared, f"{declared}    failed_before boolean;\n")
            change(fresh_url, "postbus_data.claim_by_key", f"        or {look}\n", "        or failed_before\n")
            change(
                fresh_url,
                "postbus_data.claim_by_key",
                begun,
                f"{begun}    failed_before := {look};\n    perform {pause};\n",
            )

        second.execute("set lock_timeout = '10s'")
        with psycopg.connect(fresh_url) as holder:
            holder.execute("select pg_advisory_lock(42)")
            holder.commit()
            second.pgconn.send_query(b"select d.seq from postbus.receive('s', 'c', 1) as d")
            while pauser.execute("select from pg_locks where objid = 42 and not granted").fetchone() is None:
                pass
            consumer.nack(first)
            holder.execute("select pg_advisory_unlock(42)")
            holder.commit()
        result = second.pgconn.get_result()
        assert result is not None
        assert result.ntuples == (0 if reads_leases_first else 1)
        second.pgconn.get_result()


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_receive_that_began_before_the_partitions_were_changed(fresh_url: str, has_mark: bool) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c")
        bus.publish("s", key="a", data=1)
        consumer.nack(consumer.receive(1), delay=3600)
        if not has_mark:
            change(
                fresh_url,
                "postbus_data.claim_partition",
                "elsif place.read_to_seq = 9223372036854775807 then",
                "elsif false then",
            )
        with connected(fresh_url) as late, connected(fresh_url) as other:
            late.execute("create temp table reader as select c from postbus_data.consumer as c")
            bus.alter_stream("s", partitions=3)
            bus.publish("s", key="a", data=2)
            assert receive(other) == []

            late.execute("update postbus_data.waiting set due_at = clock_timestamp()")
            late.execute("select b from reader as r, postbus_data.claim_batches(r.c, 1, null, null, null) as b")
            # Who comes later has to know what it leased: 2 waits behind 1.
            assert receive(other) == ([] if has_mark else [2])


@pytest.mark.parametrize("looks_twice", [True, False])
def test_a_publisher_that_is_overtaken_by_a_change_of_partitions(fresh_url: str, looks_twice: bool) -> None:
    with postbus.connect(fresh_url) as bus, connected(fresh_url) as first, connected(fresh_url) as barrier:
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c")
        drawing = "seq := nextval(entry.sequence);"
        change(fresh_url, "postbus.publish", drawing, f"perform pg_advisory_xact_lock_shared(42, 42); {drawing}")
        if not looks_twice:
            change(fresh_url, "postbus.publish", "<> entry.layout then", "<> entry.layout and false then")

        barrier.execute("select pg_advisory_lock(42, 42)")
        first.execute("set lock_timeout = 0")
        with ThreadPoolExecutor(1) as threads:
            slow = threads.submit(first.execute, "select postbus.publish('s', 'a', '\"slow\"')")
            until(lambda: barrier.execute(_WAITING).fetchone() == (1,), "the publisher has read the layout")
            bus.alter_stream("s", partitions=3)
            bus.publish_many("s", [Message(key="a", data="fast")])
            barrier.execute("select pg_advisory_unlock(42, 42)")
            slow.result()
        bus.maintain("s")

        found = []
        while batch := consumer.receive(1):
            found += [delivery.data for delivery in batch]
            consumer.ack(batch)
        assert found == (["fast", "slow"] if looks_twice else ["slow", "fast"])


@pytest.mark.parametrize("waits", [True, False])
def test_the_last_ack_of_a_lease_that_a_heartbeat_splits(fresh_url: str, waits: bool) -> None:
    with postbus.connect(fresh_url) as bus, connected(fresh_url) as heart, connected(fresh_url) as other:
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c", order="none")
        bus.publish_many("s", [Message(data=n) for n in range(3)])
        *done, last = consumer.receive(3)
        consumer.ack(done)
        if not waits:
            lock = (
                "perform from postbus_data.lease as l where l.token = settle_messages.token"
                " and l.consumer_id + 0 = settle_messages.consumer_id"
            )
            change(fresh_url, "postbus_data.settle_messages", f"{lock} for update;", "")
        with ThreadPoolExecutor(1) as threads:
            with heart.transaction():
                heart.execute("select postbus.extend('s', 'c', array[%s], interval '5 minutes')", (last.ack_id,))
                acking = threads.submit(consumer.ack, last)
                until(lambda: other.execute(_BLOCKED).fetchone() == (1,), "the ack waits for the heartbeat")
            assert acking.result() == 1

        other.execute("update postbus_data.lease set deadline = clock_timestamp()")
        bus.sweep("s")
        # Without the wait, the piece that the heartbeat made was not seen, and what says that it is acked was deleted.
        assert receive(other) == ([] if waits else [3])


def test_a_receive_waits_a_moment_for_the_only_partition_and_no_longer(fresh_url: str) -> None:
    with postbus.connect(fresh_url) as bus, connected(fresh_url) as other, ThreadPoolExecutor() as threads:
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c", order="none")
        bus.publish_many("s", [Message(data=n) for n in range(4)])
        other.execute("begin")
        assert receive(other, 2) == [1, 2]

        assert list(consumer.receive(2)) == []

        waiting = threads.submit(consumer.receive, 2)
        until(lambda: other.execute(_BLOCKED).fetchone() == (1,), "a receive waits")
        other.execute("rollback")
        # What the other transaction had received is free again.
        assert [delivery.seq for delivery in waiting.result()] == [1, 2]


@pytest.mark.parametrize("has_lock", [True, False])
def test_a_late_ack_and_a_receive_of_the_redelivery_log(fresh_url: str, has_lock: bool) -> None:
    with postbus.connect(fresh_url) as bus:
        bus.create_stream("s", partitions=1)
        consumer = bus.create_consumer("s", "c", order="none")
        bus.publish("s", data=1)
        late = consumer.receive()
        with psycopg.connect(fresh_url, autocommit=True) as connection:
            connection.execute("update postbus_data.lease set deadline = clock_timestamp()")
        bus.sweep()
        if not has_lock:
            change(fresh_url, "postbus_data.settle_expired", "perform pg_advisory_xact_lock(", "perform num_nonnulls(")

        with psycopg.connect(fresh_url) as acking, ThreadPoolExecutor() as threads:
            assert consumer.ack(late, connection=acking) == 1
            receiving = threads.submit(consumer.receive)
            if not has_lock:
                with psycopg.connect(fresh_url, autocommit=True) as watcher:
                    until(lambda: watcher.execute(_BLOCKED).fetchone() == (1,), "the receive waits for the row")
            acking.commit()
            # Without the lock it has taken the message before it came to wait.
            assert len(receiving.result(10)) == (0 if has_lock else 1)

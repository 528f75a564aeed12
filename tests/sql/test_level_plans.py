"""With priorities too a receive touches few pages, whatever waits: for its time, at a lower level, or behind a held snapshot."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import postbus
from tests.sql.test_delivery_plans import consumer_of_50_000, pages, typical_pages
from tests.sql.test_plans import STATISTICS

Connection = psycopg.Connection[Any]
# Those of a receive at the default level, and for the count of urgent messages.
LEVEL_PAGES = 60
# A receive of an urgent message goes the general way.
URGENT_PAGES = 200
WAITING = 20_000
WAIT = {
    "nothing": "select",
    "scheduled": "insert into postbus_data.scheduled (stream_id, deliver_at, key, data, priority) "
    f"select 1, clock_timestamp() + interval '1 day', 'k.' || g, '1', 4 from generate_series(1, {WAITING}) as g",
    "urgent ones not due": "insert into postbus_data.scheduled (stream_id, deliver_at, key, data, priority) "
    f"select 1, clock_timestamp() + interval '1 day', 'k.' || g, '1', 9 from generate_series(1, {WAITING}) as g",
    "deferred": "insert into postbus_data.waiting (consumer_id, partition, seq, attempts, due_at, key) "
    f"select 1, 900000000 + mod(g, 8), 1000000000 + g, 0, clock_timestamp() + interval '1 day', 'k.' || g "
    f"from generate_series(1, {WAITING}) as g",
    "lower ones": "select postbus.publish_many('s', array_agg('low.' || g), array_agg('1'::text), priorities => array_agg(0)) "
    f"from generate_series(1, {WAITING}) as g group by g / 5000",
}


def with_levels(connection: Connection) -> None:
    """Levels 0 and 9 are in use, the stream's own functions know of it, and what was urgent is done."""
    connection.execute("select postbus.publish('s', 'u', '1', priority => level) from unnest(array[0, 9]) as level")
    connection.execute("select postbus.maintain('s')")
    for _ in range(40):
        receive_and_ack(connection)


def receive_and_ack(connection: Connection) -> int:
    """The priority of a message that is received and acked."""
    ((lease, partition),) = connection.execute(
        "select s.lease, s.partition from postbus_data.ack_and_receive_1('s', 'c', 1, null, 'json', null, false) as s"
    ).fetchall()
    connection.execute("select postbus_data.ack_1('s', 'c', array[%s])", (lease,))
    return 4 if partition < 100_000_000 else partition // 100_000_000


@pytest.mark.newest_server
@pytest.mark.parametrize("order", ["key", "none"])
@pytest.mark.parametrize("waits", WAIT)
def test_a_receive_touches_few_pages_whatever_waits(fresh_url: str, order: str, waits: str) -> None:
    with consumer_of_50_000(fresh_url, order, "missing") as connection:
        with_levels(connection)
        connection.execute(WAIT[waits].encode())
        receive, _ = typical_pages(connection)
    assert receive < LEVEL_PAGES


@pytest.mark.parametrize("statistics_are", STATISTICS)
@pytest.mark.parametrize("order", ["key", "none"])
def test_an_urgent_message_is_found_in_few_pages_whatever_lies_below(
    fresh_url: str, order: str, statistics_are: str
) -> None:
    with consumer_of_50_000(fresh_url, order, statistics_are) as connection:
        with_levels(connection)
        connection.execute(WAIT["lower ones"].encode())
        found = []
        for n in range(20):
            connection.execute("select postbus.publish('s', 'u' || %s, '1', priority => 9)", (n,))
            statement = "select s.* from postbus_data.ack_and_receive_1('s', 'c', 1, null, 'json', null, false) as s"
            found.append(pages(connection, statement))
            ((partition,),) = connection.execute(
                "select l.partition from postbus_data.lease as l order by l.received_at desc limit 1"
            ).fetchall()
            assert partition >= 900_000_000
            assert receive_and_ack(connection) == 4
    assert sorted(found[10:])[5] < URGENT_PAGES


@pytest.mark.newest_server
@pytest.mark.parametrize("order", ["key", "none"])
def test_dead_rows_of_urgent_messages_change_nothing(fresh_url: str, order: str) -> None:
    with (
        consumer_of_50_000(fresh_url, order, "missing") as connection,
        psycopg.connect(fresh_url) as holder,
        postbus.connect(fresh_url) as bus,
    ):
        connection.execute("alter table postbus_data.urgent_position set (autovacuum_enabled = off)")
        with_levels(connection)
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from postbus_data.stream")
        consumer = bus.consumer("s", "c")
        batch = None
        for n in range(250):
            bus.publish("s", key=f"u{n % 50}", data=n, priority=9)
            batch = consumer.receive(1, ack=batch)
            assert [each.priority for each in batch] == [9]
            batch = consumer.receive(1, ack=batch)
        consumer.receive(1, ack=batch)
        receive, _ = typical_pages(connection)
        holder.rollback()
    assert receive < LEVEL_PAGES


@pytest.mark.newest_server
@pytest.mark.parametrize("order", ["key", "none"])
def test_a_stream_without_priorities_has_functions_that_do_not_ask(fresh_url: str, order: str) -> None:
    with consumer_of_50_000(fresh_url, order, "missing") as connection:
        source = "select prosrc from pg_proc where proname = 'ack_and_receive_1'"
        assert "urgent" not in str(connection.execute(source).fetchall())
        with_levels(connection)
        assert "urgent" in str(connection.execute(source).fetchall())

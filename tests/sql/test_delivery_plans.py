"""Receiving and acking touch a handful of pages: whatever the statistics, and however many dead rows a held snapshot keeps."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import psycopg
import pytest

import postbus
from postbus.db.statements import SESSION_SETTINGS
from tests.sql.test_plans import STATISTICS

Connection = psycopg.Connection[Any]
TABLES = ("lease", "position", "waiting", "due", "settled", "parked", "consumer", "stream", "segment", "log_1_1")
PUBLISH = """
select postbus.publish_many('s', array_agg('orders.k' || g % 1000), array_agg('{"n": ' || g || '}'))
from generate_series(1, 5000) as g
"""
# A receive now and then sweeps, and may pass all dead entries once a minute: what counts is what nearly all of them do.
RECEIVE_PAGES = 90
ACK_PAGES = 30
LATE_ACK_PAGES = 100


@contextmanager
def consumer_of_50_000(url: str, order: str, statistics_are: str) -> Iterator[Connection]:
    """A session of the library's kind, and a consumer with a backlog."""
    with postbus.connect(url) as bus, psycopg.connect(url, autocommit=True) as connection:
        bus.create_stream("s")
        bus.create_consumer("s", "c", order=order)  # type: ignore[arg-type]
        for table in TABLES:
            connection.execute(f"alter table postbus_data.{table} set (autovacuum_enabled = off)".encode())
        if statistics_are == "stale":
            connection.execute("analyze")
        for _ in range(10):
            connection.execute(PUBLISH.encode())
        if statistics_are == "fresh":
            connection.execute("analyze")
        connection.execute(SESSION_SETTINGS.encode())
        yield connection


def pages(connection: Connection, statement: str) -> int:
    row = connection.execute(f"explain (analyze, buffers, format json) {statement}".encode()).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def typical_pages(
    connection: Connection, function: str = "ack_and_receive_1", ack: str = "postbus_data.ack_1"
) -> tuple[float, float]:
    """Of a receive of one message, and of its ack: medians."""
    receives, acks = [], []
    for turn in range(30):
        receives.append(
            pages(connection, f"select s.* from postbus_data.{function}('s', 'c', 1, null, 'json', null, false) as s")
        )
        tokens = connection.execute("select lpad(to_hex(l.token), 16, '0') from postbus_data.lease as l").fetchall()
        acks += [pages(connection, f"select {ack}('s', 'c', array['{token}'])") for (token,) in tokens]
        if turn == 9:
            # The first ones make plans and fill caches.
            receives, acks = [], []
    return statistics.median(receives), statistics.median(acks)


@pytest.mark.parametrize("order", ["key", "none"])
@pytest.mark.parametrize("statistics_are", STATISTICS)
def test_a_receive_and_an_ack_touch_few_pages(fresh_url: str, order: str, statistics_are: str) -> None:
    with consumer_of_50_000(fresh_url, order, statistics_are) as connection:
        receive, ack = typical_pages(connection)
    assert receive < RECEIVE_PAGES
    assert ack < ACK_PAGES


@pytest.mark.parametrize("order", ["key", "none"])
def test_dead_rows_under_a_held_snapshot_change_nothing(fresh_url: str, order: str) -> None:
    with (
        consumer_of_50_000(fresh_url, order, "missing") as connection,
        psycopg.connect(fresh_url) as holder,
        postbus.connect(fresh_url) as bus,
    ):
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from postbus_data.stream")
        consumer = bus.consumer("s", "c")
        batch = None
        for _ in range(1200):
            batch = consumer.receive(3, ack=batch)
        for delivery in consumer.receive(100, ack=batch):
            consumer.ack(delivery)
        receive, ack = typical_pages(connection)
        # The way for all that the stream's own function leaves to others.
        general_receive, public_ack = typical_pages(connection, "ack_and_receive", "postbus.ack")
        holder.rollback()
    assert receive < RECEIVE_PAGES
    assert general_receive < RECEIVE_PAGES
    assert ack < ACK_PAGES
    assert public_ack < ACK_PAGES


@pytest.mark.parametrize("order", ["key", "none"])
def test_a_lease_is_found_by_its_token_although_there_were_few_when_statistics_were_made(
    fresh_url: str, order: str
) -> None:
    """With few rows in it, any index of the table looks as good as its key: such plans stay when it has grown."""
    with consumer_of_50_000(fresh_url, order, "missing") as connection, postbus.connect(fresh_url) as bus:
        connection.execute("vacuum analyze postbus_data.lease")
        consumer = bus.consumer("s", "c")
        held = [consumer.receive(3) for _ in range(40)]
        before = entries_read(connection, "lease_deadline")

        for batch, settling in zip(held, cycle(SETTLING), strict=False):
            connection.execute(settling.format(one=batch[0].ack_id, lease=batch.leases[0]).encode())

        assert entries_read(connection, "lease_deadline") == before


@pytest.mark.parametrize("order", ["key", "none"])
@pytest.mark.parametrize("statistics_are", STATISTICS)
def test_a_late_ack_finds_its_message_among_thousands_that_wait(
    fresh_url: str, order: str, statistics_are: str
) -> None:
    with consumer_of_50_000(fresh_url, order, statistics_are) as connection, postbus.connect(fresh_url) as bus:
        consumer = bus.consumer("s", "c")
        held = [batch for _ in range(8) if (batch := consumer.receive(500))]
        connection.execute("update postbus_data.lease set deadline = clock_timestamp()")
        while bus.sweep("s"):
            pass
        assert consumer.stats().waiting > 1000

        touched = [pages(connection, f"select postbus.ack('s', 'c', array['{batch[0].ack_id}'])") for batch in held]

        assert [consumer.ack(batch[0]) for batch in held] == [0] * len(held)
        # The first ones also make plans.
        assert max(touched[2:]) < LATE_ACK_PAGES, touched


SETTLING = (
    "select postbus.ack('s', 'c', array['{one}'])",
    "select postbus.ack('s', 'c', array['{lease}'])",
    "select postbus_data.ack_1('s', 'c', array['{one}'])",
    "select postbus_data.ack_1('s', 'c', array['{lease}'])",
    "select postbus.extend('s', 'c', array['{one}'])",
    "select postbus.terminate('s', 'c', array['{one}'])",
    "select s.acked from postbus_data.ack_and_receive_1('s', 'c', 1, null, 'json', array['{lease}'], false) as s",
)


def entries_read(connection: Connection, index: str) -> int:
    connection.execute("select pg_stat_force_next_flush()")
    row = connection.execute(
        "select idx_tup_read from pg_stat_all_indexes where indexrelname = %s", (index,)
    ).fetchone()
    assert row is not None
    return int(row[0])

"""With 10,000 channels a receive touches few pages: whatever waits, rests or is paused, and under a held snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import postbus
from postbus.db.statements import SESSION_SETTINGS
from tests.sql.test_delivery_plans import typical_pages
from tests.sql.test_plans import STATISTICS

Connection = psycopg.Connection[Any]
CHANNELS = 10_000
PUBLISH = f"""
select postbus.publish_many('s', array_agg('t' || mod(g, {CHANNELS}) || '.k'), array_agg('{{"n": ' || g || '}}'))
from generate_series(1, 50000) as g
group by g / 5000
"""
# As if each channel had been found to have more: 5,000 have a turn, the others rest until a time, or are paused.
LAG = f"""
with position as (
    update postbus_data.position as p
    set read_to_seq = 50000, horizon = 50000
    returning *
),
state as (
    update postbus_data.channel_position set last_turn = {CHANNELS}, turned_to = 0
)
insert into postbus_data.turn (consumer_id, epoch, partition, channel, n, after_seq, ready_at, limited_by)
select p.consumer_id, p.epoch, p.partition, 't' || g, g, g + 1, w.ready_at, w.limited_by
from position as p
cross join generate_series(1, {CHANNELS}) as g
cross join lateral (
    select
        case mod(g, 4) when 2 then clock_timestamp() + interval '1 hour' when 3 then 'infinity'::timestamptz end as ready_at,
        case mod(g, 4) when 2 then 'rate' when 3 then 'paused' end as limited_by
) as w
"""
RECEIVE_PAGES = 140
# Its first statement reads new messages, and looks for a turn of each channel among 64.
NEW_PAGES = 500
ACK_PAGES = 40


@contextmanager
def ten_thousand(url: str, statistics_are: str, *, limits: bool = False) -> Iterator[Connection]:
    """A session of the library's kind, and a fair consumer of a stream with five messages of each channel."""
    with postbus.connect(url) as bus, psycopg.connect(url, autocommit=True) as connection:
        bus.create_stream("s", partitions=1, channel_tokens=1)
        bus.create_consumer("s", "c", order="none", fair=True)
        if limits:
            bus.channels.set("s", "*", max_concurrency=2)
            bus.channels.set("s", "t7", max_rate=100)
        for table in (
            "turn",
            "position",
            "channel_position",
            "lease",
            "channel",
            "channel_pace",
            "due",
            "waiting",
            "log_1_1",
        ):
            connection.execute(f"alter table postbus_data.{table} set (autovacuum_enabled = off)".encode())
        if statistics_are == "stale":
            connection.execute("analyze")
        connection.execute(PUBLISH.encode())
        bus.consumer("s", "c").ack(bus.consumer("s", "c").receive())
        if statistics_are == "fresh":
            connection.execute("analyze")
        connection.execute(SESSION_SETTINGS.encode())
        yield connection


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize("statistics_are", STATISTICS)
def test_a_receive_of_new_channels_touches_few_pages(fresh_url: str, statistics_are: str, limits: bool) -> None:
    with ten_thousand(fresh_url, statistics_are, limits=limits) as connection:
        receive, ack = typical_pages(connection)
    assert receive < NEW_PAGES
    assert ack < ACK_PAGES


@pytest.mark.parametrize("limits", [False, True])
@pytest.mark.parametrize("statistics_are", STATISTICS)
def test_a_receive_touches_few_pages_with_ten_thousand_turns(fresh_url: str, statistics_are: str, limits: bool) -> None:
    with ten_thousand(fresh_url, statistics_are, limits=limits) as connection:
        connection.execute("delete from postbus_data.turn")
        connection.execute(LAG.encode())
        if statistics_are == "fresh":
            connection.execute("analyze postbus_data.turn")
        receive, ack = typical_pages(connection)
        served = connection.execute(
            "select count(distinct l.n) from (select turned_to as n from postbus_data.channel_position) as l where l.n >= 30"
        ).fetchone()
    assert served == (1,)
    assert receive < RECEIVE_PAGES
    assert ack < ACK_PAGES


@pytest.mark.newest_server
def test_dead_turns_under_a_held_snapshot_change_nothing(fresh_url: str) -> None:
    with ten_thousand(fresh_url, "missing", limits=True) as connection, psycopg.connect(fresh_url) as holder:
        connection.execute("delete from postbus_data.turn")
        connection.execute(LAG.encode())
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from postbus_data.stream")
        with postbus.connect(fresh_url) as bus:
            batch = None
            for _ in range(1500):
                batch = bus.consumer("s", "c").receive(1, ack=batch)
            bus.consumer("s", "c").ack(batch or [])
        receive, ack = typical_pages(connection)
        holder.rollback()
    assert receive < RECEIVE_PAGES
    assert ack < ACK_PAGES

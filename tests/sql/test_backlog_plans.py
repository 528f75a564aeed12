"""Counting what a consumer has left to do touches a bounded number of pages, whatever the backlog and the statistics."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

import postbus
from tests.sql.test_delivery_plans import PUBLISH, pages
from tests.sql.test_plans import STATISTICS

# Two thousand messages and what leads to them; the log of this test has more than 2,000 pages.
MOST_PAGES = 2500
STATEMENTS = (
    "select postbus.backlog('s', 'plain')",
    "select postbus.backlog('s', 'picky')",
    "select * from postbus.consumer_overview('s') where name = 'idle'",
    "select (postbus.stream_info('s')).message_estimate",
)


@pytest.mark.parametrize("statistics_are", STATISTICS)
def test_a_large_backlog_costs_as_much_as_one_of_a_thousand(fresh_url: str, statistics_are: str) -> None:
    touched: list[dict[str, int]] = []
    with postbus.connect(fresh_url) as bus, psycopg.connect(fresh_url, autocommit=True) as connection:
        bus.create_stream("s")
        bus.create_consumer("s", "plain", order="none")
        bus.create_consumer("s", "picky", filter="nobody.has.this")
        connection.execute("alter table postbus_data.log_1_1 set (autovacuum_enabled = off)")
        if statistics_are == "stale":
            connection.execute("analyze")
        for times in (2, 18):
            for _ in range(times):
                connection.execute(PUBLISH.encode())
            if statistics_are == "fresh":
                connection.execute("analyze")
            touched.append({statement: _pages(connection, statement) for statement in STATEMENTS})
    few, many = touched
    for statement in STATEMENTS:
        assert many[statement] < MOST_PAGES, statement
        assert many[statement] < 2 * few[statement] + 100, statement


def _pages(connection: psycopg.Connection[Any], statement: str) -> int:
    pages(connection, statement)
    return pages(connection, statement)


def test_an_overview_without_sizes_counts_nothing(fresh_url: str) -> None:
    with postbus.connect(fresh_url) as bus, psycopg.connect(fresh_url, autocommit=True) as connection:
        bus.create_stream("s")
        connection.execute("set plan_cache_mode = force_generic_plan")
        connection.execute("select postbus.overview(sizes => true)")
        connection.execute("set track_functions = 'all'")
        connection.execute("select postbus.overview()")
        connection.execute("select pg_stat_force_next_flush()")
        called = connection.execute(
            "select f.funcname from pg_stat_user_functions as f where f.calls > 0 and f.funcname like 'count%'"
        ).fetchall()
    assert called == []

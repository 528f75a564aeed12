"""Rows that are made into something while the server commits: whatever fails, the connection can be used again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from postbus.db._async.connection import AsyncPreparedConnection
from postbus.db._sync.connection import PreparedConnection

SERIES = "select n from generate_series(1, $1::integer) as n"


@pytest.fixture
def connection(fresh_url: str) -> Iterator[PreparedConnection]:
    with PreparedConnection.connect(fresh_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def async_connection(fresh_url: str) -> AsyncIterator[AsyncPreparedConnection]:
    async with await AsyncPreparedConnection.connect(fresh_url, autocommit=True) as connection:
        yield connection


def total(rows: list[tuple[Any, ...]]) -> int:
    return sum(row[0] for row in rows)


async def test_rows_are_loaded_by_both_kinds(
    connection: PreparedConnection, async_connection: AsyncPreparedConnection
) -> None:
    for _ in range(2):
        assert connection.fetch_decoded(total, SERIES, (10_000,)) == 50_005_000
        assert await async_connection.fetch_decoded(total, SERIES, (10_000,)) == 50_005_000
        assert connection.fetch(SERIES, (1,)) == await async_connection.fetch(SERIES, (1,)) == [(1,)]


def test_a_statement_that_fails_is_an_error_and_no_more(connection: PreparedConnection) -> None:
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.fetch_decoded(total, "select 1 / (n - 5) from generate_series(1, $1::integer) as n", (9,))
        assert connection.fetch_decoded(total, SERIES, (2,)) == 3


def test_a_load_that_fails_is_an_error_and_no_more(connection: PreparedConnection) -> None:
    with pytest.raises(ZeroDivisionError):
        connection.fetch_decoded(lambda _: 1 // 0, SERIES, (9,))
    assert connection.fetch_decoded(total, SERIES, (2,)) == 3


def test_uncommitted_results_are_not_returned(connection: PreparedConnection) -> None:
    connection.execute("create temp table once (n integer unique deferrable initially deferred)")
    loaded: list[int] = []

    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.fetch_decoded(
            lambda rows: loaded.append(total(rows)), "insert into once values (7), (7) returning n", ()
        )

    assert loaded == [14]
    assert connection.fetch("select n from once", ()) == []
    assert connection.fetch_decoded(total, SERIES, (2,)) == 3


async def test_a_call_that_is_cancelled_leaves_the_connection_as_it_was(
    async_connection: AsyncPreparedConnection,
) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await async_connection.fetch_decoded(total, "select 1 from (select pg_sleep($1::integer)) as s", (60,))

    assert await async_connection.fetch_decoded(total, SERIES, (2,)) == 3


def test_a_segment_that_is_dropped_between_two_looks_is_looked_for_again(connection: PreparedConnection) -> None:
    """As when maintenance drops it while a receive is on its way: the second time, all is found as it is now."""
    connection.execute("create sequence turns")
    connection.execute(
        """create function pg_temp.look() returns integer language plpgsql as $$
        begin
            if nextval('turns') = 1 then
                perform from postbus_data.log_99_1;
            end if;
            return 7;
        end $$"""
    )
    assert connection.fetch("select pg_temp.look()", ()) == [(7,)]

    connection.execute("alter sequence turns restart")
    with pytest.raises(psycopg.errors.UndefinedTable), connection.transaction():
        connection.fetch("select pg_temp.look()", ())

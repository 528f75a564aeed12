"""The bus works through PgBouncer in transaction mode, where each transaction may run in another session."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

import postbus
from postbus.db import migrations
from tests import pgbouncer, servers

pytestmark = pytest.mark.skipif(
    pgbouncer.program() is None, reason="PgBouncer is not installed (Debian: apt-get install pgbouncer)"
)


@pytest.fixture(scope="module")
def direct_url(server: servers.Server) -> Iterator[str]:
    """A database with Postbus, past PgBouncer."""
    with servers.database(server.url) as url:
        yield url


@pytest.fixture(scope="module")
def url(direct_url: str) -> Iterator[str]:
    """The same through PgBouncer; the fixture `bus` uses it."""
    with pgbouncer.running(direct_url) as url:
        yield url


async def test_a_stream_is_created_published_to_read_altered_and_dropped(bus: Any, name: str) -> None:
    await bus.create_stream(name, partitions=4)
    seqs = [await bus.publish(name, key=f"k.{number % 7}", data=number) for number in range(100)]
    seqs += await bus.publish_many(name, [postbus.Message(key="many", data=number) for number in range(100, 300)])

    found = [message async for message in bus.scan(name, page_size=50)]
    assert [(message.seq, message.data) for message in found] == list(zip(seqs, range(300), strict=True))
    assert [message.data for message in await bus.read(name, key="k.3", backwards=True, max_messages=2)] == [94, 87]

    await bus.alter_stream(name, max_message_bytes=10)
    with pytest.raises(postbus.TooLarge):
        await bus.publish(name, data="x" * 20)
    assert (await bus.stream_info(name)).max_message_bytes == 10
    assert await bus.horizon(name) == seqs[-1]
    await bus.drop_stream(name)
    with pytest.raises(postbus.NotFound):
        await bus.publish(name, data=1)


async def test_a_stream_continues_in_new_segments(bus: Any, name: str) -> None:
    await bus.create_stream(name, segment_bytes=65536)
    published = 0
    while (await bus.stream_info(name)).segment_count < 3:
        await bus.publish_many(name, [postbus.Message(data="x" * 1000) for _ in range(100)])
        await bus.publish(name, data="single")
        published += 101
        await bus.maintain(name)

    assert len([message async for message in bus.scan(name)]) == published


def test_twenty_threads_publish_over_a_few_sessions(url: str, direct_url: str, name: str) -> None:
    with postbus.connect(url, pool_size=20) as bus, ThreadPoolExecutor(20) as threads:
        bus.create_stream(name)
        published = list(threads.map(lambda number: bus.publish(name, key="a", data=number), range(1000)))

        found = list(bus.scan(name))

    assert Counter(published) == Counter(message.seq for message in found)
    assert sorted(message.data for message in found) == list(range(1000))
    assert 1 <= session_count(direct_url) <= pgbouncer.POOL_SIZE


async def test_twenty_tasks_publish_over_a_few_sessions(url: str, direct_url: str, name: str) -> None:
    async with await postbus.connect_async(url, pool_size=20) as bus:
        await bus.create_stream(name)
        published = await asyncio.gather(*(bus.publish(name, key="a", data=number) for number in range(1000)))

        found = [message async for message in bus.scan(name)]

    assert Counter(published) == Counter(message.seq for message in found)
    assert sorted(message.data for message in found) == list(range(1000))
    assert 1 <= session_count(direct_url) <= pgbouncer.POOL_SIZE


async def test_a_loop_over_batches(bus: Any, name: str) -> None:
    await bus.create_stream(name)
    consumer = await bus.create_consumer(name, "c", order="none")
    await bus.publish_many(name, [postbus.Message(key=f"k{number}", data=number) for number in range(100)])

    seen = [delivery.data async for batch in consumer.batches(7, wait=0) for delivery in batch]

    assert sorted(seen) == list(range(100))
    assert (await consumer.stats()).in_flight == 0


async def test_an_open_transaction_that_published_holds_readers_back(bus: Any, url: str, name: str) -> None:
    await bus.create_stream(name)
    with psycopg.connect(url) as transaction:
        transaction.execute("select postbus.publish(%s, data => '1')", (name,))
        await bus.publish(name, data=2)

        assert [message.data for message in await bus.read(name)] == []
        assert [holder.state for holder in await bus.horizon_holders(name)] == ["idle in transaction"]

        transaction.commit()
        assert [message.data for message in await bus.read(name)] == [1, 2]


def test_an_install_runs_through_it(server: servers.Server) -> None:
    with servers.database(server.url, install=False) as direct, pgbouncer.running(direct) as url:
        assert [step.name for step in migrations.migrate(url)] == ["install"]
        assert migrations.migrate(url) == []

        postbus.connect(url).close()


def session_count(direct_url: str) -> int:
    """How many sessions PgBouncer has in the database."""
    with psycopg.connect(direct_url) as connection:
        row = connection.execute(
            """select count(*) from pg_stat_activity
            where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()"""
        ).fetchone()
    return row[0] if row is not None else 0

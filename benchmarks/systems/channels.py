"""Postbus with channels, and a plain re-creation of LonnyMQ's channel row. Each of the 1,000 keys is a channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Literal

import asyncpg
import orjson
import psycopg

import postbus
from benchmarks.messages import SQL_DATA, SQL_KEY, Message, look_into
from benchmarks.systems.base import Consumer
from benchmarks.systems.job_queues import CONCURRENCY, PostbusWorkers, Tally, Work
from benchmarks.systems.postbus import FILL as POSTBUS_FILL
from benchmarks.systems.postbus import Postbus
from postbus.db import migrations

Kind = Literal["none", "channels", "fair", "limited"]
_NAMES: Final[dict[Kind, str]] = {
    "none": "without channels",
    "channels": "with channels, first in first out",
    "fair": "fair",
    "limited": "fair, 8 in flight for each",
}


class PostbusChannels(Postbus):
    """A stream with one partition, so that turns are between all channels.

    Args:
        kind: What its consumer is like.
    """

    def __init__(self, kind: Kind) -> None:
        super().__init__()
        self.name = f"postbus {_NAMES[kind]}"
        self._kind = kind

    def create_places(self, url: str, places: Sequence[str]) -> None:
        with postbus.connect(url) as bus:
            for place in places:
                bus.create_stream(place, partitions=1, channel_tokens=None if self._kind == "none" else 2)
                for consumer in self._consumers:
                    bus.create_consumer(place, consumer, order="none", fair=self._kind in ("fair", "limited"))
                if self._kind == "limited":
                    bus.channels.set(place, "*.*", max_concurrency=8)


# As the article has it: a channel knows its head, and when it may be served; serving it moves it behind those that wait.
_CREATE: Final = """
create table {place} (
    id bigserial primary key, channel_id bigint not null, content bytea not null, dequeue_at bigint not null, unlock_at bigint
);
create index on {place} (channel_id, dequeue_at, id) where unlock_at is null;
create index on {place} (unlock_at) where unlock_at is not null;
create table {place}_channel (
    id bigserial primary key, name text not null unique, max_concurrency integer not null default 2147483647,
    current_concurrency integer not null default 0, current_size integer not null default 0,
    message_id bigint, dequeue_next_at bigint not null default 0
);
create index on {place}_channel (dequeue_next_at) where message_id is not null and current_concurrency < max_concurrency;
create function {place}_now() returns bigint language sql volatile as
    $$ select floor(extract(epoch from clock_timestamp()) * 1000000)::bigint $$;
create function {place}_create(p_channel text, p_content bytea) returns void language plpgsql as $$
declare
    v_channel record;
    v_id bigint;
    v_now bigint := {place}_now();
begin
    insert into {place}_channel (name) values (p_channel) on conflict do nothing;
    select c.* into v_channel from {place}_channel as c where c.name = p_channel for update;
    insert into {place} (channel_id, content, dequeue_at) values (v_channel.id, p_content, v_now) returning id into v_id;
    update {place}_channel as c
    set current_size = c.current_size + 1,
        message_id = coalesce(c.message_id, v_id),
        dequeue_next_at = case when c.message_id is null then greatest(c.dequeue_next_at, v_now) else c.dequeue_next_at end
    where c.id = v_channel.id;
end
$$;
create function {place}_dequeue(out id bigint, out content bytea) language plpgsql as $$
declare
    v_now bigint := {place}_now();
    v_channel record;
    v_next bigint;
begin
    update {place} as m set unlock_at = v_now + 30000000
    where m.id = (
        select e.id from {place} as e where e.unlock_at <= v_now order by e.unlock_at limit 1 for update skip locked
    )
    returning m.id, m.content into id, content;
    if id is not null then
        return;
    end if;
    select c.* into v_channel
    from {place}_channel as c
    where c.message_id is not null and c.current_concurrency < c.max_concurrency and c.dequeue_next_at <= v_now
    order by c.dequeue_next_at
    limit 1
    for update skip locked;
    if v_channel.id is null then
        return;
    end if;
    update {place} as m set unlock_at = v_now + 30000000
    where m.id = v_channel.message_id
    returning m.id, m.content into id, content;
    v_next := (
        select m.id from {place} as m
        where m.channel_id = v_channel.id and m.unlock_at is null
        order by m.dequeue_at, m.id
        limit 1
    );
    update {place}_channel as c
    set current_concurrency = c.current_concurrency + 1, message_id = v_next, dequeue_next_at = v_now
    where c.id = v_channel.id;
end
$$;
create function {place}_complete(p_id bigint) returns void language plpgsql as $$
declare
    v_channel bigint;
begin
    delete from {place} as m where m.id = p_id returning m.channel_id into v_channel;
    update {place}_channel as c
    set current_concurrency = c.current_concurrency - 1, current_size = c.current_size - 1
    where c.id = v_channel;
end
$$
"""
_DROP: Final = """
drop function {place}_create, {place}_dequeue, {place}_complete, {place}_now;
drop table {place}, {place}_channel
"""
_FILL: Final = f"""
select count({{place}}_create({SQL_KEY}, convert_to({SQL_DATA}, 'UTF8'))::text) from generate_series(0, %s - 1) as i
"""
_Connection = psycopg.Connection[tuple[Any, ...]]


class _Publisher:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def publish(self, place: str, message: Message) -> None:
        content = orjson.dumps(message.data)
        self._connection.execute(f"select {place}_create(%s, %s)".encode(), (message.key, content), prepare=True)

    def publish_many(self, place: str, messages: Sequence[Message]) -> None:
        """It has no batches: one call for each, in a transaction, in the order of channels, lest two producers deadlock."""
        with self._connection.transaction():
            for each in sorted(messages, key=lambda message: message.key):
                self.publish(place, each)


class _Consumer:
    def __init__(self, connection: _Connection, place: str) -> None:
        self._connection = connection
        self._dequeue = f"select m.id, m.content from {place}_dequeue() as m".encode()
        self._complete = f"select {place}_complete(%s)".encode()

    def receive_and_ack(self, max_messages: int) -> int:
        """Two calls for each message. That a channel is locked just now does not mean that there is nothing."""
        found = 0
        misses = 0
        while found < max_messages and misses < 5:
            ((number, content),) = self._connection.execute(self._dequeue, prepare=True).fetchall()
            if number is None:
                misses += 1
                continue
            found += look_into([orjson.loads(content)])
            self._connection.execute(self._complete, (number,), prepare=True)
        return found


class LonnyMqChannels:
    name = "lonnymq's channel row"

    def install(self, url: str) -> None: ...

    def create_place(self, url: str, place: str) -> None:
        self._execute(url, _CREATE, place)

    def drop_place(self, url: str, place: str) -> None:
        self._execute(url, _DROP, place)

    def count(self, url: str, place: str) -> int:
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute(f"select count(*) from {place}".encode()).fetchone()
            assert row is not None
            return int(row[0])

    def fill(self, url: str, place: str, message_count: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_FILL.replace("{place}", place).encode(), (message_count,))
            connection.execute(f"vacuum analyze {place}_channel".encode())

    @contextmanager
    def open_publisher(self, url: str) -> Iterator[_Publisher]:
        with psycopg.connect(url, autocommit=True) as connection:
            yield _Publisher(connection)

    @contextmanager
    def open_consumer(self, url: str, place: str, *, worker: int = 0, worker_count: int = 1) -> Iterator[Consumer]:
        with psycopg.connect(url, autocommit=True) as connection:
            yield _Consumer(connection, place)

    def _execute(self, url: str, script: str, place: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(script.replace("{place}", place).encode())


class FairWorkers(PostbusWorkers):
    """A queue whose 1,000 tenants take turns."""

    name = "postbus fair"

    async def install(self, url: str) -> None:
        migrations.migrate(url)
        async with await postbus.connect_async(url) as bus:
            await bus.create_queue("jobs", channel_tokens=2, fair=True)

    async def fill(self, url: str, job_count: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(POSTBUS_FILL.encode(), ("jobs", job_count))


class LonnyMqChannelWorkers:
    """Sixteen loops that take a message, handle it and complete it, until nothing is left."""

    name = "lonnymq's channel row"
    _place: Final = "jobs"

    async def install(self, url: str) -> None:
        LonnyMqChannels().create_place(url, self._place)

    async def fill(self, url: str, job_count: int) -> None:
        LonnyMqChannels().fill(url, self._place, job_count)

    @asynccontextmanager
    async def opened(self, url: str, tally: Tally) -> AsyncIterator[Work]:
        async with asyncpg.create_pool(url, min_size=CONCURRENCY, max_size=CONCURRENCY) as pool:

            async def loop() -> None:
                misses = 0
                while misses < 5:
                    number, content = await pool.fetchrow(f"select m.id, m.content from {self._place}_dequeue() as m")
                    if number is None:
                        misses += 1
                        continue
                    tally.handled(orjson.loads(content))
                    await pool.execute(f"select {self._place}_complete($1)", number)

            async def work() -> None:
                await asyncio.gather(*(loop() for _ in range(CONCURRENCY)))

            yield work

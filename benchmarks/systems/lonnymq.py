"""A plain re-creation of the table of LonnyMQ's article: an index on the time and the id; one row is locked, taken and deleted.

The functions are those of the article where they run, and what it says they do where they do not: times are milliseconds, and the
index is `(dequeue_after, id)`. A message is gone when it is taken, so a worker who dies then has lost it. Content is bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import asyncpg
import orjson
import psycopg

from benchmarks.messages import SQL_DATA, Message, look_into, message
from benchmarks.systems.base import Consumer
from benchmarks.systems.job_queues import CONCURRENCY, Tally, Work

_CREATE: Final = """
create table {place} (id bigserial primary key, content bytea not null, dequeue_after bigint not null);
create index {place}_dequeue on {place} (dequeue_after, id);
create function {place}_create(p_content bytea, p_dequeue_after bigint default null) returns void language plpgsql as $$
begin
    insert into {place} (content, dequeue_after)
    values (p_content, coalesce(p_dequeue_after, floor(extract(epoch from now()) * 1000)::bigint));
end
$$;
create function {place}_dequeue() returns bytea language plpgsql as $$
declare
    v_now bigint := floor(extract(epoch from now()) * 1000)::bigint;
    v_message record;
begin
    select m.id, m.content
    into v_message
    from {place} as m
    where m.dequeue_after <= v_now
    order by m.dequeue_after, m.id
    limit 1
    for update skip locked;
    if v_message.id is null then
        return null;
    end if;
    delete from {place} as m where m.id = v_message.id;
    return v_message.content;
end
$$
"""
_DROP: Final = "drop function {place}_create, {place}_dequeue; drop table {place}"
_FILL: Final = f"""
insert into {{place}} (content, dequeue_after)
select convert_to({SQL_DATA}, 'UTF8'), floor(extract(epoch from now()) * 1000)::bigint from generate_series(0, %s - 1) as i
"""
_Connection = psycopg.Connection[tuple[Any, ...]]


class _Publisher:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def publish(self, place: str, message: Message) -> None:
        self._connection.execute(f"select {place}_create(%s)".encode(), (orjson.dumps(message.data),), prepare=True)

    def publish_many(self, place: str, messages: Sequence[Message]) -> None:
        """It has no batches: one call for each, in a transaction."""
        with self._connection.transaction():
            for each in messages:
                self.publish(place, each)


class _Consumer:
    def __init__(self, connection: _Connection, place: str) -> None:
        self._connection = connection
        self._statement = f"select {place}_dequeue()".encode()

    def receive_and_ack(self, max_messages: int) -> int:
        """One call for each message."""
        found = 0
        for _ in range(max_messages):
            ((content,),) = self._connection.execute(self._statement, prepare=True).fetchall()
            if content is None:
                break
            found += look_into([orjson.loads(content)])
        return found


class LonnyMq:
    name = "lonnymq's table"

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


class LonnyMqWorkers:
    """Sixteen loops that take a message and handle it, until nothing is left."""

    name = "lonnymq's table"
    _place: Final = "jobs"

    async def install(self, url: str) -> None:
        LonnyMq().create_place(url, self._place)

    async def fill(self, url: str, job_count: int) -> None:
        with LonnyMq().open_publisher(url) as publisher:
            publisher.publish_many(self._place, [message(number) for number in range(job_count)])

    @asynccontextmanager
    async def opened(self, url: str, tally: Tally) -> AsyncIterator[Work]:
        async with asyncpg.create_pool(url, min_size=CONCURRENCY, max_size=CONCURRENCY) as pool:

            async def loop() -> None:
                while (content := await pool.fetchval(f"select {self._place}_dequeue()")) is not None:
                    tally.handled(orjson.loads(content))

            async def work() -> None:
                await asyncio.gather(*(loop() for _ in range(CONCURRENCY)))

            yield work

"""Logs that groups read by position: Postbus, and the pattern of pg-messaging, where a counter row numbers messages.

There a group claims by moving its row on, and reads what it has claimed by a second statement, at most once. Postbus is
asked for the same, which it does in one call, and for a loop over batches at least once. Its partitions are topics there,
which a worker visits in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import orjson
import psycopg
from psycopg import sql

import postbus
from benchmarks.messages import SQL_DATA, Message, look_into
from benchmarks.systems.base import Consumer
from benchmarks.systems.postbus import Postbus, PostbusPublisher

PARTITIONS: Final = 4
GROUPS: Final = 5


class PostbusGroupReader:
    def __init__(self, group: postbus.Group) -> None:
        self._group = group

    def receive_and_ack(self, max_messages: int) -> int:
        return look_into(message.data for message in self._group.receive(max_messages))


class PostbusGroups(Postbus):
    """A stream with groups instead of consumers; a worker reads the group of its number."""

    name = "postbus-groups"

    def __init__(self, *, shared: bool = True) -> None:
        super().__init__(consumer_count=0)
        self._shared = shared

    def create_places(self, url: str, places: Sequence[str]) -> None:
        with postbus.connect(url) as bus:
            for place in places:
                bus.create_stream(place, partitions=PARTITIONS)
                for group in range(GROUPS):
                    bus.create_group(place, f"group_{group}")

    @contextmanager
    def open_consumer(self, url: str, place: str, *, worker: int = 0, worker_count: int = 1) -> Iterator[Consumer]:
        with postbus.connect(url) as bus:
            yield PostbusGroupReader(bus.group(place, f"group_{0 if self._shared else worker}"))


class PostbusGroupLoopReader:
    """Asks its loop for one batch after the other; what is read was claimed in larger pieces."""

    def __init__(self, group: postbus.Group) -> None:
        self._group = group
        self._loop: Iterator[list[postbus.Message]] | None = None

    def receive_and_ack(self, max_messages: int) -> int:
        self._loop = self._loop or self._group.batches(max_messages, wait=0)
        messages = next(self._loop, None)
        if messages is None:
            self._loop = None
            return 0
        return look_into(message.data for message in messages)


class PostbusGroupLoops(PostbusGroups):
    """The same at least once: ranges with a lease, committed when they are done."""

    name = "postbus-group-loops"

    @contextmanager
    def open_consumer(self, url: str, place: str, *, worker: int = 0, worker_count: int = 1) -> Iterator[Consumer]:
        with postbus.connect(url) as bus:
            yield PostbusGroupLoopReader(bus.group(place, f"group_{0 if self._shared else worker}"))


_CREATE: Final = """
create schema {place};
create table {place}.counter (topic integer primary key, next_number bigint not null);
create table {place}.log (
    id bigint generated always as identity primary key,
    topic integer not null,
    number bigint not null,
    payload bytea not null,
    created_at timestamptz not null default now(),
    unique (topic, number)
);
create table {place}.reader (
    name text not null,
    topic integer not null,
    next_number bigint not null default 1,
    primary key (name, topic)
);
insert into {place}.counter select topic, 1 from generate_series(0, {topics} - 1) as topic;
insert into {place}.reader
select 'group_' || number, topic, 1 from generate_series(0, {groups} - 1) as number, generate_series(0, {topics} - 1) as topic;
"""
_PUBLISH: Final = """
with first as (
    update {place}.counter set next_number = next_number + cardinality(%(payloads)s::bytea[])
    where topic = %(topic)s
    returning next_number - cardinality(%(payloads)s::bytea[]) as number
)
insert into {place}.log (topic, number, payload)
select %(topic)s, first.number + p.place - 1, p.payload
from first, unnest(%(payloads)s::bytea[]) with ordinality as p (payload, place)
"""
_CLAIM: Final = """
with mine as (
    select
        r.next_number as first_number,
        least(%(wanted)s, (select c.next_number from {place}.counter as c where c.topic = %(topic)s) - r.next_number) as size
    from {place}.reader as r
    where r.name = %(name)s and r.topic = %(topic)s
    for update
)
update {place}.reader as r
set next_number = m.first_number + greatest(m.size, 0)
from mine as m
where r.name = %(name)s and r.topic = %(topic)s
returning m.first_number, r.next_number - 1
"""
_FETCH: Final = """
select number, payload, created_at from {place}.log where topic = %s and number between %s and %s order by number
"""
_FILL: Final = f"""
select mod(batch.n, {PARTITIONS}), batch.payloads
from (
    select i / 1000 as n, array_agg(convert_to({SQL_DATA}, 'UTF8')) as payloads
    from generate_series(0, %s - 1) as i
    group by i / 1000
) as batch
"""


def _named(statement: str, place: str) -> sql.Composed:
    return sql.SQL(statement).format(
        place=sql.Identifier(place), topics=sql.Literal(PARTITIONS), groups=sql.Literal(GROUPS)
    )


class CounterRowPublisher:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._turn = count()

    def publish(self, place: str, message: Message) -> None:
        self.publish_many(place, [message])

    def publish_many(self, place: str, messages: Sequence[Message]) -> None:
        payloads = [orjson.dumps(message.data) for message in messages]
        topic = next(self._turn) % PARTITIONS
        self._connection.execute(_named(_PUBLISH, place), {"payloads": payloads, "topic": topic})


class CounterRowReader:
    def __init__(self, connection: psycopg.Connection[Any], place: str, group: str) -> None:
        self._connection = connection
        self._claim = _named(_CLAIM, place).as_string(connection)
        self._fetch = _named(_FETCH, place).as_string(connection)
        self._group = group
        self._turn = count()

    def receive_and_ack(self, max_messages: int) -> int:
        """Claim from the next topic that has something, and fetch it."""
        for _ in range(PARTITIONS):
            topic = next(self._turn) % PARTITIONS
            parameters = {"name": self._group, "topic": topic, "wanted": max_messages}
            row = self._connection.execute(self._claim.encode(), parameters).fetchone()
            if row is not None and row[1] >= row[0]:
                found = self._connection.execute(self._fetch.encode(), (topic, *row)).fetchall()
                return look_into(orjson.loads(payload) for _, payload, _ in found)
        return 0


class CounterRow:
    name = "counter-row"

    def __init__(self, *, shared: bool = True) -> None:
        self._shared = shared

    def install(self, url: str) -> None:
        pass

    def create_place(self, url: str, place: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_named(_CREATE, place))

    def drop_place(self, url: str, place: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(place)))

    def count(self, url: str, place: str) -> int:
        with psycopg.connect(url) as connection:
            row = connection.execute(sql.SQL("select count(*) from {}.log").format(sql.Identifier(place))).fetchone()
            return int(row[0]) if row else 0

    def fill(self, url: str, place: str, message_count: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            for topic, payloads in connection.execute(_FILL.encode(), (message_count,)).fetchall():
                connection.execute(_named(_PUBLISH, place), {"payloads": payloads, "topic": topic})

    @contextmanager
    def open_publisher(self, url: str) -> Iterator[CounterRowPublisher]:
        with psycopg.connect(url, autocommit=True, prepare_threshold=1) as connection:
            yield CounterRowPublisher(connection)

    @contextmanager
    def open_consumer(self, url: str, place: str, *, worker: int = 0, worker_count: int = 1) -> Iterator[Consumer]:
        with psycopg.connect(url, autocommit=True, prepare_threshold=1) as connection:
            yield CounterRowReader(connection, place, f"group_{0 if self._shared else worker}")


__all__ = ["GROUPS", "PARTITIONS", "CounterRow", "PostbusGroupLoops", "PostbusGroups", "PostbusPublisher"]

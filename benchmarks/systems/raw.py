"""No system at all: a table shaped like a segment of a Postbus log, and the fastest plain statements.

It checks nothing, orders nothing for readers and returns no numbers. What Postbus costs above it is the price of being a bus.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import orjson
import psycopg

from benchmarks.messages import SQL_DATA, SQL_KEY, Message, look_into

_PARTITION_COUNT: Final = 8
_CREATE: Final = """
create sequence {place}_seq minvalue 0 start 0;
create table {place} (
    seq bigint not null default nextval('{place}_seq'),
    published_at timestamptz not null default clock_timestamp(),
    partition integer not null,
    key text collate "C",
    data json not null,
    headers jsonb,
    primary key (partition, seq)
);
alter sequence {place}_seq owned by {place}.seq
"""
_COPY: Final = "copy {place} (partition, key, data) from stdin"
_INSERT: Final = "insert into {place} (partition, key, data) values (%s, %s, %s::json)"
_INSERT_MANY: Final = """
insert into {place} (partition, key, data)
select m.* from unnest(%s::integer[], %s::text[], %s::json[]) as m
"""
_FILL: Final = f"""
insert into {{place}} (partition, key, data)
select mod(i, {_PARTITION_COUNT}), {SQL_KEY}, ({SQL_DATA})::json from generate_series(0, %s - 1) as i
"""
_PAGE: Final = """
select seq, published_at, partition, key, data, headers
from {place}
where (partition, seq) > (%s, %s)
order by partition, seq
limit %s
"""
_PAGE_OF_SOME_PARTITIONS: Final = """
select seq, published_at, partition, key, data, headers
from {place}
where (partition, seq) > (%s, %s) and partition <= %s
order by partition, seq
limit %s
"""

_Row = tuple[int, str, str]
_Connection = psycopg.Connection[tuple[Any, ...]]


@cache
def _statement(template: str, place: str) -> bytes:
    """A statement on one table. Made once, as a program with one table would have it; places are names of our own."""
    return template.replace("{place}", place).encode()


def _row(message: Message) -> _Row:
    return zlib.crc32(message.key.encode()) % _PARTITION_COUNT, message.key, orjson.dumps(message.data).decode()


class CopyPublisher:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def publish(self, place: str, message: Message) -> None:
        self.publish_many(place, [message])

    def publish_many(self, place: str, messages: Sequence[Message]) -> None:
        with self._connection.cursor() as cursor, cursor.copy(_statement(_COPY, place)) as copy:
            for message in messages:
                copy.write_row(_row(message))


class InsertPublisher:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def publish(self, place: str, message: Message) -> None:
        self._connection.execute(_statement(_INSERT, place), _row(message))

    def publish_many(self, place: str, messages: Sequence[Message]) -> None:
        columns = [list(column) for column in zip(*map(_row, messages), strict=True)]
        self._connection.execute(_statement(_INSERT_MANY, place), columns)


class TableReader:
    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def pages(self, place: str, page_size: int) -> Iterator[int]:
        partition, seq = -1, -1
        while rows := self._connection.execute(_statement(_PAGE, place), (partition, seq, page_size)).fetchall():
            yield look_into(row[4] for row in rows)
            seq, _, partition, *_ = rows[-1]


class SelectConsumer:
    """Takes what comes next and leaves it there. It alone knows where it stands: no lease, no ack, no other worker."""

    def __init__(self, connection: _Connection, place: str, first_partition: int, last_partition: int) -> None:
        self._connection = connection
        self._statement = _statement(_PAGE_OF_SOME_PARTITIONS, place)
        self._partition, self._seq = first_partition, -1
        self._last_partition = last_partition

    def receive_and_ack(self, max_messages: int) -> int:
        parameters = (self._partition, self._seq, self._last_partition, max_messages)
        rows = self._connection.execute(self._statement, parameters).fetchall()
        if rows:
            self._seq, _, self._partition, *_ = rows[-1]
        return look_into(row[4] for row in rows)


class RawTable:
    """The table itself: for reading, and what the raw publishing systems share."""

    name = "raw"

    def install(self, url: str) -> None:
        """Postgres is all it needs."""

    def create_place(self, url: str, place: str) -> None:
        self.create_places(url, [place])

    def create_places(self, url: str, places: Sequence[str]) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            for place in places:
                connection.execute(_statement(_CREATE, place))

    def drop_place(self, url: str, place: str) -> None:
        self._run(url, _statement("drop table {place}", place))

    def count(self, url: str, place: str) -> int:
        with psycopg.connect(url) as connection:
            row = connection.execute(_statement("select count(*) from {place}", place)).fetchone()
        return row[0] if row else 0

    def fill(self, url: str, place: str, message_count: int) -> None:
        self._run(url, _statement(_FILL, place), message_count)

    @contextmanager
    def open_reader(self, url: str) -> Iterator[TableReader]:
        with _connect(url) as connection:
            yield TableReader(connection)

    def _run(self, url: str, statement: bytes, *parameters: int) -> None:
        with psycopg.connect(url) as connection:
            connection.execute(statement, parameters or None)


class RawCopy(RawTable):
    name = "raw-copy"

    @contextmanager
    def open_publisher(self, url: str) -> Iterator[CopyPublisher]:
        with _connect(url) as connection:
            yield CopyPublisher(connection)


class RawInsert(RawTable):
    name = "raw-insert"

    @contextmanager
    def open_publisher(self, url: str) -> Iterator[InsertPublisher]:
        with _connect(url) as connection:
            yield InsertPublisher(connection)


class RawSelect(RawTable):
    name = "raw-select"

    @contextmanager
    def open_consumer(
        self, url: str, place: str, *, worker: int = 0, worker_count: int = 1
    ) -> Iterator[SelectConsumer]:
        """Each worker walks through partitions of its own."""
        first, end = (number * _PARTITION_COUNT // worker_count for number in (worker, worker + 1))
        with _connect(url) as connection:
            yield SelectConsumer(connection, place, first, end - 1)


def _connect(url: str) -> _Connection:
    """One commit per statement, each prepared at once and kept, however many there are."""
    connection = psycopg.connect(url, autocommit=True, prepare_threshold=0)
    connection.prepared_max = None
    return connection

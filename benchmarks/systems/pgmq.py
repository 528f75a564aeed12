"""pgmq, whose SQL comes from its wheel, called by psycopg without the wheel's client.

That is to its advantage: the client borrows a connection from a pool and opens a transaction for each call. Data is
encoded by orjson, as in the wheel's async client; the sync one uses the standard library.

Batches go in two ways. `pgmq` passes a list, as a user of psycopg would. `pgmq-binary` passes the array as Postbus does,
encoded by hand, which psycopg does not do by itself: beside it, what is left of a difference is made in the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any, Final, LiteralString

import orjson
import psycopg
from psycopg import sql

from benchmarks.messages import SQL_DATA, Message, look_into
from postbus.db import array_dumpers
from postbus.db.arrays import JsonbArray

_SEND: Final = "select pgmq.send(%s::text, %s::jsonb)"
_SEND_BATCH: Final = "select pgmq.send_batch(%s::text, %s::jsonb[])"
_READ: Final = "select r.msg_id, r.read_ct, r.enqueued_at, r.message from pgmq.read(%s::text, 30, %s) as r"
# Without more arguments it looks ten times a second, for five seconds.
_POLL: Final = "select r.msg_id, r.read_ct, r.enqueued_at, r.message from pgmq.read_with_poll(%s::text, 30, %s) as r"
_DELETE: Final = "select pgmq.delete(%s::text, %s::bigint[])"
_FILL: Final = f"""
select count(*)
from (
    select array_agg(({SQL_DATA})::jsonb) as data
    from generate_series(0, %s - 1) as i
    group by i / 10000
) as batch
cross join lateral pgmq.send_batch(%s::text, batch.data) as sent
"""


class PgmqPublisher:
    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def publish(self, place: str, message: Message) -> None:
        """Send the data. pgmq has no keys, so it has less to write."""
        self._connection.execute(_SEND, (place, orjson.dumps(message.data).decode())).fetchall()

    def publish_many(self, place: str, messages: Sequence[Message]) -> None:
        encoded = [orjson.dumps(message.data).decode() for message in messages]
        self._connection.execute(_SEND_BATCH, (place, encoded)).fetchall()


class BinaryPgmqPublisher(PgmqPublisher):
    def publish_many(self, place: str, messages: Sequence[Message]) -> None:
        encoded = JsonbArray([orjson.dumps(message.data) for message in messages])
        self._connection.execute(_SEND_BATCH, (place, encoded)).fetchall()


class PgmqConsumer:
    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], place: str) -> None:
        self._connection = connection
        self._place = place

    def receive_and_ack(self, max_messages: int) -> int:
        """Read, which hides the messages for 30 s, then delete. psycopg decodes jsonb with the standard library's json."""
        rows = self._connection.execute(_READ, (self._place, max_messages)).fetchall()
        message_count = look_into(row[3] for row in rows)
        if rows:
            self._connection.execute(_DELETE, (self._place, [row[0] for row in rows])).fetchall()
        return message_count


class PgmqPoller:
    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], place: str) -> None:
        self._connection = connection
        self._place = place
        self._last: list[int] = []

    def receive(self, max_messages: int) -> Sequence[Mapping[str, Any]]:
        if self._last:
            self._connection.execute(_DELETE, (self._place, self._last)).fetchall()
        rows = self._connection.execute(_POLL, (self._place, max_messages)).fetchall()
        self._last = [row[0] for row in rows]
        return [row[3] for row in rows]


class Pgmq:
    name = "pgmq"

    def install(self, url: str) -> None:
        """Install it unless it is there: its two adapters share one."""
        script = files("pgmq").joinpath("sql", "pgmq.sql").read_bytes()
        with psycopg.connect(url) as connection:
            if connection.execute("select from pg_namespace where nspname = 'pgmq'").fetchone() is None:
                connection.execute("create schema pgmq")
                connection.execute(script)

    def create_place(self, url: str, place: str) -> None:
        self._call(url, "select pgmq.create(%s)", place)

    def drop_place(self, url: str, place: str) -> None:
        self._call(url, "select pgmq.drop_queue(%s)", place)

    def count(self, url: str, place: str) -> int:
        statement = sql.SQL("select count(*) from {}").format(sql.Identifier("pgmq", f"q_{place}"))
        with psycopg.connect(url) as connection:
            row = connection.execute(statement).fetchone()
        return row[0] if row else 0

    @contextmanager
    def open_publisher(self, url: str) -> Iterator[PgmqPublisher]:
        with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
            yield PgmqPublisher(connection)

    def fill(self, url: str, place: str, message_count: int) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_FILL, (message_count, place))

    @contextmanager
    def open_consumer(self, url: str, place: str, *, worker: int = 0, worker_count: int = 1) -> Iterator[PgmqConsumer]:
        with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
            yield PgmqConsumer(connection, place)

    @contextmanager
    def open_poller(self, url: str, place: str) -> Iterator[PgmqPoller]:
        with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
            yield PgmqPoller(connection, place)

    def _call(self, url: str, statement: LiteralString, place: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement, (place,))


class BinaryPgmq(Pgmq):
    name = "pgmq-binary"

    @contextmanager
    def open_publisher(self, url: str) -> Iterator[BinaryPgmqPublisher]:
        with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
            array_dumpers.register(connection)
            yield BinaryPgmqPublisher(connection)

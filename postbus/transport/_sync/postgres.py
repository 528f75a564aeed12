# Generated from postbus/transport/_async/postgres.py by `make generate`; edit that file.

"""Operations over Postgres: statements on a pool of connections, or on a connection of the caller's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from postbus.codec import parameters, rows
from postbus.codec.rows import Row
from postbus.db import statements
from postbus.db._sync.database import Database, in_thread
from postbus.db._sync.transactions import Transactions
from postbus.db.embedded import EmbeddedServer
from postbus.db.own_connections import OwnConnection
from postbus.model.delivery import Batch, Deliveries, ack_ids
from postbus.model.duration import Duration, as_timedelta
from postbus.model.errors import Unavailable
from postbus.model.group import Claim, Fetched
from postbus.model.message import Message, Seq
from postbus.model.stream import DataType
from postbus.operations import deliveries, groups
from postbus.operations.call import DATA_TYPE, Call, DataSql, Program, Sql
from postbus.transport._sync.batches import PostgresBatches
from postbus.transport._sync.known_streams import NO_OWN_FUNCTION, KnownStreams, is_large
from postbus.transport._sync.schedule_filler import fill_schedules
from postbus.transport._sync.waiting import PostgresWaiting
from postbus.transport._sync.wakeups import Wakeups

_Result = TypeVar("_Result")
# A stream's own publish function needs: no connection of the caller, no ttl, no time, no dedup_id, no priority.
_PLAIN: Final = (None, None, None, None, None, None)


class PostgresTransport:
    """Runs operations by calling SQL functions.

    Args:
        database: The pool.
        server: The embedded Postgres, which is stopped when the transport is closed.
    """

    token = None

    def __init__(self, database: Database, *, server: EmbeddedServer | None = None) -> None:
        self.database = database
        self._server = server
        self._streams = KnownStreams(database)
        self._wakeups = Wakeups(database)

    @property
    def url(self) -> str:
        return self.database.url

    def close(self) -> None:
        self.database.close()
        if self._server is not None:
            self._server.stop()

    def check(self) -> None:
        self.database.check_installed()

    def run(self, call: Call[_Result], connection: OwnConnection | None = None) -> _Result:
        sql = call.sql
        if isinstance(sql, Program):
            return in_thread(sql.run, self.url)
        if isinstance(sql, DataSql):
            return self._run_with_data(sql, connection, repeatable=call.repeatable)
        if sql.own is not None and connection is None:
            result = sql.decode(self._streams.run_own(*sql.own, sql.statement, sql.parameters))
        else:
            result = self.run_sql(sql, connection, repeatable=call.repeatable)
        if call.redelivers:
            self._wakeups.expect_redelivery()
        if sql.afterwards is not None and connection is None:
            self.run(sql.afterwards())
        return result

    def run_sql(
        self, sql: Sql[_Result], connection: OwnConnection | None = None, *, repeatable: bool = False
    ) -> _Result:
        """Run a statement, and those of its further pages."""
        found = self.database.rows(sql.statement, sql.parameters, connection=connection, repeatable=repeatable)
        page = result = sql.decode(found)
        if sql.next_page is not None:
            while (following := sql.next_page(page)) is not None:
                found = self.database.rows(sql.statement, following, connection=connection, repeatable=repeatable)
                page = sql.decode(found)
                result = result + page  # type: ignore[operator]
        return result

    def _run_with_data(self, sql: DataSql[_Result], connection: OwnConnection | None, *, repeatable: bool) -> _Result:
        given = sql.parameters
        if callable(given):
            return sql.decode(*self._streams.run(sql.stream, connection, sql.statement, given, repeatable=repeatable))
        if DATA_TYPE not in given:
            data_type = self._streams.data_type(sql.stream)
            found = self.database.rows(sql.statement, given, connection=connection, repeatable=repeatable)
            return sql.decode(data_type, found)

        def with_type(data_type: DataType) -> list[Any]:
            return [data_type if value is DATA_TYPE else value for value in given]

        return sql.decode(*self._streams.run(sql.stream, connection, sql.statement, with_type, repeatable=repeatable))

    def fill_schedules(self) -> int:
        return fill_schedules(self.run)

    def publish(
        self,
        stream: str,
        message: Message,
        ttl: Duration | None,
        deliver_at: datetime | None,
        delay: Duration | None,
        connection: OwnConnection | None,
    ) -> Seq:
        named = (message.dedup_id, parameters.priority_of(message))
        known = self._streams.get(stream)
        if known is not None and known.own_id is not None and (connection, ttl, deliver_at, delay, *named) == _PLAIN:
            try:
                found = self.database.rows(
                    statements.publish_to(known.own_id), parameters.publisher_parameters(known.data_type, message)
                )
                return Seq.answered(found[0][0])
            except NO_OWN_FUNCTION:
                self._streams.forget(stream)  # Look it up again.
        later = (as_timedelta(ttl), deliver_at, as_timedelta(delay))
        _, found = self._streams.run(
            stream,
            connection,
            statements.PUBLISH,
            lambda data_type: (*parameters.publish_parameters(stream, data_type, message), *later, *named),
        )
        return Seq.answered(found[0][0])

    def publish_many(
        self,
        stream: str,
        messages: Sequence[Message],
        ttl: Duration | None,
        deliver_at: datetime | None,
        delay: Duration | None,
        connection: OwnConnection | None,
    ) -> list[Seq]:
        named = (parameters.dedup_ids(messages), parameters.priorities(messages))
        known = self._streams.get(stream)
        if known is not None and known.own_id is not None and (connection, ttl, deliver_at, delay, *named) == _PLAIN:
            try:
                found = self.database.rows(
                    statements.publish_many_to(known.own_id), parameters.publisher_arrays(known.data_type, messages)
                )
                return _all_answered(found[0][0])
            except NO_OWN_FUNCTION:
                self._streams.forget(stream)
        later = (as_timedelta(ttl), deliver_at, as_timedelta(delay))
        _, found = self._streams.run(
            stream,
            connection,
            statements.PUBLISH_MANY,
            lambda data_type: (*parameters.publish_many_parameters(stream, data_type, messages), *later, *named),
        )
        return _all_answered(found[0][0])

    def receive(
        self,
        stream: str,
        consumer: str,
        max_messages: int,
        ack: Deliveries | None,
        wait: Duration,
        ack_wait: Duration | None,
        connection: OwnConnection | None,
    ) -> Batch:
        waits_for = as_timedelta(wait) if wait else None
        if connection is not None:
            if ack is not None and (ids := ack_ids(ack)):
                self.run(deliveries.ack(stream, consumer, ids), connection)
            statement = statements.RECEIVE_IN_TRANSACTION
            return self.receive_once(stream, consumer, statement, max_messages, ack_wait, connection=connection)
        statement = statements.RECEIVE if ack is None else statements.ACK_AND_RECEIVE
        batch = self.receive_once(stream, consumer, statement, max_messages, ack_wait, ack=ack)
        if batch or not waits_for:
            return batch
        acked_count = batch.acked_count
        waiter = self._wakeups.waiter(stream, consumer, waits_for)
        try:
            with waiter:
                while not batch and waiter.wait():
                    batch = self.receive_once(stream, consumer, statements.RECEIVE, max_messages, ack_wait)
        except Unavailable:
            # The ack did take effect, so the original error would be misleading.
            if not acked_count:
                raise
        return replace(batch, acked_count=acked_count)

    def receive_once(
        self,
        stream: str,
        consumer: str,
        statement: str,
        max_messages: int,
        ack_wait: Duration | None,
        *,
        ack: Deliveries | None = None,
        connection: OwnConnection | None = None,
    ) -> Batch:
        """Receive without waiting for messages."""
        duration = as_timedelta(ack_wait)
        ids = None if ack is None else parameters.text_array(ack_ids(ack))

        def with_type(data_type: DataType) -> tuple[Any, ...]:
            return stream, consumer, max_messages, duration, data_type, ids

        early = statement == statements.ACK_AND_RECEIVE and is_large(max_messages)
        return self._streams.receive(stream, connection, statement, with_type, rows.batch, early=early)

    def receive_raw(self, stream: str, consumer: str, max_messages: int, ack_wait: Duration | None = None) -> Batch:
        """Receive without waiting, and without decoding: the data of a json stream is its text."""
        duration = as_timedelta(ack_wait)

        def with_type(data_type: DataType) -> tuple[Any, ...]:
            return stream, consumer, max_messages, duration, data_type, None

        return self._streams.receive(stream, None, statements.RECEIVE, with_type, rows.raw_batch, early=False)

    def claim(
        self,
        stream: str,
        group: str,
        max_messages: int,
        *,
        lease: Duration | None,
        worker: str | None,
        wait: Duration,
        connection: OwnConnection | None,
    ) -> list[Claim]:
        call = groups.claim(stream, group, max_messages=max_messages, lease=lease, worker=worker)
        waits_for = as_timedelta(wait) if wait else None
        claims = self.run(call, connection)
        if claims or not waits_for or connection is not None:
            return claims
        with self._wakeups.waiter(stream, group, waits_for) as waiter:
            while not claims and waiter.wait():
                claims = self.run(call)
        return claims

    def claim_and_fetch(
        self,
        stream: str,
        group: str,
        max_messages: int,
        *,
        lease: Duration | None,
        finished: Sequence[Claim],
        wait: Duration,
    ) -> list[Fetched]:
        """Commit ranges, claim others and fetch them, in one round trip. It commits before it waits for messages."""
        duration = as_timedelta(lease)
        waits_for = as_timedelta(wait) if wait else None
        found = self._consume(stream, group, max_messages, duration, finished)
        if found or not waits_for:
            return found
        with self._wakeups.waiter(stream, group, waits_for) as waiter:
            while not found and waiter.wait():
                found = self._consume(stream, group, max_messages, duration, ())
        return found

    def _consume(
        self, stream: str, group: str, max_messages: int, lease: timedelta | None, finished: Sequence[Claim]
    ) -> list[Fetched]:
        tokens = parameters.text_array([each.token for each in finished if each.token]) if finished else None

        def with_type(data_type: DataType) -> tuple[Any, ...]:
            return stream, group, max_messages, lease, data_type, tokens

        load: Callable[[DataType, list[Row]], list[Fetched]] = rows.ranges
        early = is_large(max_messages)
        return self._streams.receive(stream, None, statements.CONSUME, with_type, load, early=early)

    def batches(self, stream: str, consumer: str) -> PostgresBatches:
        def receive(max_messages: int, ack_wait: Duration | None, ack: Batch | None) -> Any:
            return self.receive_once(stream, consumer, statements.RECEIVE, max_messages, ack_wait, ack=ack)

        return PostgresBatches(self.database, receive)

    def waiting(self, stream: str, consumer: str) -> PostgresWaiting:
        return PostgresWaiting(self._wakeups, stream, consumer)

    def transactions(self) -> Transactions:
        return Transactions(self.url)

    def forget(self, stream: str) -> None:
        self._streams.forget(stream)


def _all_answered(found: list[int]) -> list[Seq]:
    if min(found, default=1) <= 0:
        return [Seq.answered(answer) for answer in found]
    return list(map(Seq, found))

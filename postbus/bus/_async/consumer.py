"""A consumer: receiving, and settling what was received."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from postbus.bus._async.base import is_large
from postbus.bus._async.consumer_loop import AsyncConsumerLoop
from postbus.bus._async.redelivery import AsyncRedelivery
from postbus.codec import rows
from postbus.db import statements
from postbus.model.consumer import (
    Backoff,
    ConsumerInfo,
    ConsumerStats,
    Filter,
    HistoryEntry,
    OnDead,
    OnExpired,
    Outcome,
    Peeked,
    Start,
    State,
)
from postbus.model.delivery import Batch, Deliveries, ack_ids
from postbus.model.errors import ConnectionLost, Unavailable
from postbus.model.outcome import WorkSummary
from postbus.model.stream import DataType
from postbus.transport._async.waiting import AsyncPostgresWaiting, AsyncWaitStrategy
from postbus.worker._async.worker import AsyncWorker
from postbus.worker.leases import LeaseExtender, PostgresLeaseExtender

if TYPE_CHECKING:
    from postbus.db._async.connection import AsyncLeanConnection
    from postbus.db._async.database import Connection


class AsyncConsumer(AsyncRedelivery):
    """A named reader of a stream; get one from `bus.consumer`. Safe to share between tasks.

    Every method raises `postbus.NotFound` when the stream or the consumer does not exist.
    """

    async def receive(
        self,
        max_messages: int = 1,
        *,
        ack: Deliveries | None = None,
        wait: float | timedelta = 0,
        ack_wait: float | timedelta | None = None,
        connection: Connection | None = None,
    ) -> Batch:
        """Lease the next messages: nobody else gets them until they are acked, nacked or the lease ends.

        Args:
            max_messages: How many at most, 1 to 10,000.
            ack: Finish these deliveries in the same round trip, durably; `batch.acked_count` says how many counted.
            wait: How many seconds to wait for a message if there is none. No transaction or connection is held meanwhile.
            ack_wait: How long they are leased; None takes the consumer's setting.
            connection: A connection of yours, to receive in your transaction; then nothing is waited for.

        Returns:
            The batch, in order within each partition; empty when there was nothing.
        """
        if connection is not None and ack is not None:
            await self.ack(ack, connection=connection)
        if connection is not None:
            return await self._receive(statements.RECEIVE_IN_TRANSACTION, max_messages, ack_wait, connection)
        statement = statements.RECEIVE if ack is None else statements.ACK_AND_RECEIVE
        batch = await self._receive(statement, max_messages, ack_wait, ack=ack)
        if batch or not wait:
            return batch
        acked_count = batch.acked_count
        waiter = self._bus._wakeups.waiter(self.stream, self.name, rows.seconds(wait) or timedelta())
        try:
            async with waiter:
                while not batch and await waiter.wait():
                    batch = await self._receive(statements.RECEIVE, max_messages, ack_wait)
        except Unavailable:
            # "Nothing was done" would not be true of the ack.
            if not acked_count:
                raise
        return replace(batch, acked_count=acked_count)

    async def batches(
        self,
        max_messages: int = 100,
        *,
        wait: float | timedelta | None = None,
        ack_wait: float | timedelta | None = None,
    ) -> AsyncGenerator[Batch]:
        """Loop over messages in batches, at least once.

        A batch is acked when the loop asks for the next one, in the same round trip. That is written to disk while the next
        one is handled; when the loop has ended, all of it is. So a crash of the server may bring back the last batch that
        was done. Some of a batch may be acked, nacked, terminated or extended by itself before. Leaving the loop
        gives back the batch at which it was left, for its next attempt.

        Args:
            max_messages: How many messages a batch has at most, 1 to 10,000.
            wait: How many seconds to wait for messages before the loop ends; None for ever.
            ack_wait: How long they are leased; None takes the consumer's setting.
        """
        loop = AsyncConsumerLoop(self, max_messages, ack_wait)
        try:
            while batch := await loop.take(rows.seconds(wait)):
                yield batch
        finally:
            await loop.leave()

    async def ack(self, deliveries: Deliveries, *, connection: Connection | None = None) -> int:
        """Finish deliveries: a batch, some of it, or ack ids. Durable when this returns.

        Args:
            deliveries: What is done.
            connection: A connection of yours: your writes and the ack commit together, or neither.

        Returns:
            How many were finished. One that was settled before, or has expired and been given to somebody else, is not counted.
        """
        return await self._settle(statements.ACK, deliveries, connection)

    async def nack(
        self,
        deliveries: Deliveries,
        *,
        delay: float | timedelta | None = None,
        reason: str | None = None,
        untried: bool = False,
        connection: Connection | None = None,
    ) -> int:
        """Give deliveries back: they have failed and come again, or become dead letters after `max_deliver`.

        Args:
            deliveries: What has failed.
            delay: How long each waits first; None takes the consumer's backoff.
            reason: Why, kept with the message.
            untried: Nobody has worked on them: this delivery does not count, and without a delay they come again at once.
            connection: A connection of yours.

        Returns:
            How many were given back by this call.
        """
        arguments = (rows.seconds(delay), reason, untried)
        failed_count = await self._settle(statements.NACK, deliveries, connection, *arguments)
        self._bus._wakeups.expect_redelivery()
        return failed_count

    async def extend(
        self,
        deliveries: Deliveries,
        *,
        ack_wait: float | timedelta | None = None,
        shorten: bool = False,
        connection: Connection | None = None,
    ) -> int:
        """Lease deliveries for longer, counted from now.

        Args:
            deliveries: What is still being worked on.
            ack_wait: For how long; None takes the consumer's setting.
            shorten: Let a lease end earlier too. Without it a lease is never shortened.
            connection: A connection of yours.

        Returns:
            How many are leased until then, or longer already.
        """
        return await self._settle(statements.EXTEND, deliveries, connection, rows.seconds(ack_wait), shorten)

    async def terminate(
        self, deliveries: Deliveries, *, reason: str | None = None, connection: Connection | None = None
    ) -> int:
        """Make deliveries dead letters at once.

        Returns:
            How many were buried by this call.
        """
        return await self._settle(statements.TERMINATE, deliveries, connection, reason)

    async def run(
        self,
        handler: Callable[..., Any],
        *,
        concurrency: int = 1,
        prefetch: int | None = None,
        ack_wait: float | timedelta | None = None,
        handler_timeout: float | timedelta | None = None,
        backoff: Backoff | None = None,
        transaction: bool = False,
        stop_when_empty: bool = False,
        grace: float | timedelta = 20,
        install_signal_handlers: bool = True,
    ) -> WorkSummary:
        """Handle messages until SIGTERM or SIGINT: a worker with heartbeats, retries and a graceful stop.

        Args:
            handler: Called with each delivery, and with a connection if there is a transaction. Returning acks; raising fails, as
                the exception says: `postbus.Retry`, `postbus.Reject`, or any other.
            concurrency: How many messages are handled at the same time.
            prefetch: How many more may wait in the worker at most; None for what is handled soon.
            ack_wait: For how long deliveries are leased and each heartbeat extends them; None takes the consumer's setting.
            handler_timeout: How long the handler may take for a message, which has failed then; None for ever.
            backoff: How long a message waits after its first, second, … failure. None takes the consumer's setting and, if it has
                none, 1 second at first, then twice as long each time, up to 5 minutes.
            transaction: Give the handler a connection, in a transaction that commits with the ack or rolls back.
            stop_when_empty: Return when there is nothing left to receive; messages that wait for another delivery are left.
            grace: How long handlers may go on after a stop.
            install_signal_handlers: Let SIGTERM and SIGINT stop it, if this is the main thread. A second one: leave at once.

        Returns:
            What was done. A `postbus.Worker` can also be stopped by its `stop`.

        Raises:
            InvalidInput: An argument is not allowed.
        """
        worker = AsyncWorker(
            self,
            handler,
            concurrency=concurrency,
            prefetch=prefetch,
            ack_wait=ack_wait,
            handler_timeout=handler_timeout,
            backoff=backoff,
            transaction=transaction,
            stop_when_empty=stop_when_empty,
            grace=grace,
            install_signal_handlers=install_signal_handlers,
        )
        return await worker.run()

    async def info(self) -> ConsumerInfo:
        """Its settings."""
        return rows.consumer_info((await self._call(statements.CONSUMER_INFO, repeatable=True))[0])

    async def alter(
        self,
        *,
        ack_wait: float | timedelta | None = None,
        max_ack_pending: int | None = None,
        max_deliver: int | None = None,
        backoff: Backoff | None = None,
        retain_dead: float | timedelta | None = None,
        max_per_key: int | None = None,
        max_waiting: int | None = None,
        on_dead: OnDead | None = None,
        filter: Filter | str | None = None,
        on_expired: OnExpired | None = None,
        keep_unread: bool | None = None,
        expire_after: float | timedelta | None = None,
        keep_history: float | timedelta | None = None,
        unset: tuple[str, ...] = (),
    ) -> None:
        """Change settings; None leaves one as it is. The order cannot be changed.

        Args:
            ack_wait: How long a delivery is leased.
            max_ack_pending: How many messages may be in flight.
            max_deliver: How many deliveries before a message becomes a dead letter.
            backoff: How long a message waits after each failure.
            retain_dead: How long dead letters are kept.
            max_per_key: How many messages of a key a batch may hold.
            max_waiting: How many messages may be parked before reading ahead stops.
            on_dead: Whether a dead letter lets its key go on or holds it.
            filter: Which messages it wants, of those not delivered yet; its parts that are None stay as they are.
            on_expired: Whether a message whose time to live is over is skipped or becomes a dead letter.
            keep_unread: Whether the stream keeps what it has not finished.
            expire_after: It is removed when nobody has received from it for so long.
            keep_history: For how long `history` knows what became of each delivery.
            unset: Settings to put back to none: max_deliver, backoff, retain_dead, max_per_key, filter_key_pattern,
                filter_headers, filter_headers_not, filter_data, expire_after, keep_history.

        Raises:
            InvalidInput: A value is not allowed.
        """
        delays = (None, None, None, None) if backoff is None else rows.backoff_parameters(backoff)
        await self._call(
            statements.ALTER_CONSUMER,
            rows.seconds(ack_wait),
            max_ack_pending,
            max_deliver,
            *delays,
            rows.seconds(retain_dead),
            max_per_key,
            max_waiting,
            on_dead,
            *rows.filter_parameters(filter),
            on_expired,
            keep_unread,
            rows.seconds(expire_after),
            rows.seconds(keep_history),
            rows.text_array(unset),
        )

    async def pause(self) -> None:
        """Give no more messages until `resume`. What is in flight may be acked."""
        await self._call(statements.PAUSE, repeatable=True)

    async def resume(self) -> None:
        """Go on after `pause`."""
        await self._call(statements.RESUME, repeatable=True)

    async def seek(
        self, start: Start | None = None, *, from_seq: int | None = None, from_time: datetime | None = None
    ) -> int:
        """Read on from another position. What is in flight or waits is given up, and its acks are refused.

        Args:
            start: "earliest" (the oldest message kept) or "latest" (what is published from now on).
            from_seq: This message.
            from_time: What was published since.

        Returns:
            The seq after which it reads on.

        Raises:
            InvalidInput: Not exactly one position was given.
        """
        return int((await self._call(statements.SEEK, start, from_seq, from_time))[0][0])

    async def stats(self) -> ConsumerStats:
        """Where it stands: lag, in flight, waiting, dead, by partition and in all."""
        return rows.consumer_stats(await self._call(statements.STATS, repeatable=True))

    async def history(
        self, *, outcome: Outcome | None = None, before_time: datetime | None = None, max_messages: int = 100
    ) -> list[HistoryEntry]:
        """What became of its deliveries, the newest first, for as long as its `keep_history` says.

        Args:
            outcome: Only acked, failed or dead ones.
            before_time: Only what was finished before: for the next page, the `finished_at` of the last one.
            max_messages: How many at most, 1 to 10,000.
        """
        data_type = await self._bus._data_type(self.stream)
        found = await self._call(statements.HISTORY, outcome, before_time, max_messages, repeatable=True)
        return [rows.history_entry(data_type, row) for row in found]

    async def peek(
        self,
        *,
        state: State | None = None,
        key_pattern: str | None = None,
        after_seq: int = 0,
        max_messages: int = 100,
    ) -> list[Peeked]:
        """Messages as it sees them, in order of seq, without touching anything.

        Args:
            state: Only those available, delivered, waiting or dead.
            key_pattern: Only messages whose key matches.
            after_seq: Only messages above this seq: the last of the page before.
            max_messages: How many at most, 1 to 10,000.
        """
        data_type = await self._bus._data_type(self.stream)
        found = await self._call(statements.PEEK, state, key_pattern, after_seq, max_messages, repeatable=True)
        return [rows.peeked(data_type, row) for row in found]

    async def drop(self) -> None:
        """Remove the consumer with its position, leases and dead letters."""
        await self._call(statements.DROP_CONSUMER)

    def _waiting(self) -> AsyncWaitStrategy:
        return AsyncPostgresWaiting(self._bus._wakeups, self.stream, self.name)

    def _lease_extender(self, *, connect_timeout: float) -> LeaseExtender:
        return PostgresLeaseExtender(self._bus.url, self.stream, self.name, connect_timeout=connect_timeout)

    async def _receive(
        self,
        statement: str,
        max_messages: int,
        ack_wait: float | timedelta | None,
        connection: Connection | None = None,
        ack: Deliveries | None = None,
    ) -> Batch:
        duration = rows.seconds(ack_wait)
        ids = None if ack is None else rows.text_array(ack_ids(ack))

        def parameters(data_type: DataType) -> tuple[Any, ...]:
            return self.stream, self.name, max_messages, duration, data_type, ids

        early = statement == statements.ACK_AND_RECEIVE and is_large(max_messages)
        return await self._bus._serve(self.stream, connection, statement, parameters, rows.batch, early=early)

    async def _next_batch(
        self,
        max_messages: int,
        ack_wait: float | timedelta | None,
        ack: Batch | None,
        flushing: AsyncLeanConnection | None,
    ) -> tuple[Batch, AsyncLeanConnection | None]:
        """Ack and receive without waiting for the disk; and the connection that has it written, if that is not done."""
        batch = await self._receive(statements.RECEIVE, max_messages, ack_wait, ack=ack)
        if ack is None:
            # A claim need not be on disk.
            return batch, None
        try:
            return batch, await self._bus._database.flush(flushing)
        except Unavailable as error:
            # "Nothing was done" would not be true.
            raise ConnectionLost(f"what was acked may not be on disk: {error.message}", error.hint) from error

    async def _settle(
        self, statement: str, deliveries: Deliveries, connection: Connection | None, *arguments: Any
    ) -> int:
        ids = ack_ids(deliveries)
        if not ids:
            return 0
        found = await self._call(statement, rows.text_array(ids), *arguments, connection=connection)
        return int(found[0][0])

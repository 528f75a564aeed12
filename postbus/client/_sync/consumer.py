# Generated from postbus/client/_async/consumer.py by `make generate`; edit that file.

"""A consumer: receiving messages, and acking or nacking them."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Unpack

from postbus._compat import sleep
from postbus.client._sync.batch_loop import BatchLoop
from postbus.client._sync.redelivery import Redelivery
from postbus.codec.settings import given
from postbus.model.consumer import (
    Backoff,
    Completion,
    ConsumerInfo,
    ConsumerStats,
    HistoryEntry,
    Outcome,
    Peeked,
    Start,
    State,
)
from postbus.model.delivery import Batch, Deliveries, ack_ids
from postbus.model.duration import as_seconds
from postbus.model.outcome import WorkSummary
from postbus.model.settings import ConsumerChanges
from postbus.operations import consumers
from postbus.operations import deliveries as operations

if TYPE_CHECKING:
    from postbus.db.own_connections import OwnConnection

# Between two looks at a message whose end is awaited, in seconds.
_SHORTEST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.5
# How long a server is asked to wait, in seconds: a proxy may close an idle connection.
_POLL_SECONDS: Final = 20.0


class Consumer(Redelivery):
    """A named reader of a stream; get one from `bus.consumer`. Safe to share between threads.

    Every method raises `postbus.NotFound` when the stream or the consumer does not exist. Over HTTP, an answer holds 1,000
    messages at most, also where more were asked for.
    """

    def receive(
        self,
        max_messages: int = 1,
        *,
        ack: Deliveries | None = None,
        wait: float | timedelta = 0,
        ack_wait: float | timedelta | None = None,
        connection: OwnConnection | None = None,
    ) -> Batch:
        """Lease the next messages. No other receiver gets them until they are acked or nacked, or the lease expires.

        Args:
            max_messages: The largest number of messages, 1 to 10,000.
            ack: Ack these deliveries in the same round trip, durably; `batch.acked_count` says how many counted.
            wait: How many seconds to wait for a message if there is none. No transaction or connection is held meanwhile.
            ack_wait: How long messages are leased; None takes the consumer's setting.
            connection: Your own connection, to receive in your transaction; then the call does not wait. Until your transaction
                ends, others receive nothing from the partitions that it took messages from.

        Returns:
            The batch, in order within each partition, of one priority: the highest that has some. Empty if there were no
            messages, or if other transactions hold the partitions that have some.
        """
        return self._transport.receive(self.stream, self.name, max_messages, ack, wait, ack_wait, connection)

    def batches(
        self,
        max_messages: int = 100,
        *,
        wait: float | timedelta | None = None,
        ack_wait: float | timedelta | None = None,
    ) -> Generator[Batch]:
        """Loop over messages in batches, at least once.

        A batch is acked when the loop asks for the next one, in the same round trip. That is written to disk while the next
        one is handled; when the loop has ended, all of it is. So a crash of the server may bring back the last batch that
        was done. Some of a batch may be acked, nacked, terminated or extended by itself before. Leaving the loop
        gives back the batch at which it was left, for its next attempt.

        Args:
            max_messages: The largest number of messages in a batch, 1 to 10,000.
            wait: How many seconds to wait for messages before the loop ends; None waits indefinitely.
            ack_wait: How long messages are leased; None takes the consumer's setting.
        """
        loop = BatchLoop(self, self._transport.batches(self.stream, self.name), max_messages, ack_wait)
        try:
            while batch := loop.take(as_seconds(wait)):
                yield batch
        finally:
            loop.leave()

    def ack(self, deliveries: Deliveries, *, connection: OwnConnection | None = None) -> int:
        """Ack deliveries: a batch, some of it, or ack ids. Durable when this returns.

        Args:
            deliveries: The deliveries that are done.
            connection: Your own connection: your writes and the ack commit together, or not at all.

        Returns:
            How many counted. A delivery that has already ended, or has expired and gone to another receiver, does not count. One
            that has expired counts as long as nobody else has received the message, also if it has become a dead letter.
        """
        ids = ack_ids(deliveries)
        return self._transport.run(operations.ack(self.stream, self.name, ids), connection) if ids else 0

    def nack(
        self,
        deliveries: Deliveries,
        *,
        delay: float | timedelta | None = None,
        reason: str | None = None,
        untried: bool = False,
        connection: OwnConnection | None = None,
    ) -> int:
        """Nack failed deliveries: they are redelivered, or become dead letters after `max_deliver` attempts.

        Args:
            deliveries: The deliveries that failed.
            delay: How long each waits before it is redelivered; None takes the consumer's backoff.
            reason: Why it failed, stored with the message.
            untried: No handler has tried them: this delivery does not count, and without a delay they are redelivered at once.
            connection: Your own connection.

        Returns:
            How many counted. A delivery whose lease has expired does not count once that was noticed: its message waits for
            redelivery already.
        """
        ids = ack_ids(deliveries)
        if not ids:
            return 0
        call = operations.nack(self.stream, self.name, ids, delay=delay, reason=reason, untried=untried)
        return self._transport.run(call, connection)

    def defer(
        self,
        deliveries: Deliveries,
        *,
        delay: float | timedelta | None = None,
        until: datetime | None = None,
        state: Any = ...,
        connection: OwnConnection | None = None,
    ) -> int:
        """Defer deliveries: their messages come back later, with a state that is saved with them. This counts as no attempt.

        Args:
            deliveries: The deliveries to defer.
            delay: How long each waits, up to 365 days. Without a delay and a time they are available at once.
            until: When they are available, instead of a delay.
            state: What to save with each message: a JSON value or bytes, up to 64 KiB. It comes back as `delivery.state`,
                also after a failure or a redrive, until the message is acked. Left out, the last one is kept; None removes it.
            connection: Your own connection: your writes and the deferral commit together, or not at all.

        Returns:
            How many counted, as for `ack`.

        Raises:
            InvalidInput: The time or the state is not allowed.
        """
        ids = ack_ids(deliveries)
        if not ids:
            return 0
        call = operations.defer(self.stream, self.name, ids, delay=delay, until=until, state=state)
        return self._transport.run(call, connection)

    def extend(
        self,
        deliveries: Deliveries,
        *,
        ack_wait: float | timedelta | None = None,
        shorten: bool = False,
        connection: OwnConnection | None = None,
    ) -> int:
        """Extend the leases of deliveries, counted from now.

        Args:
            deliveries: The deliveries that are still being handled.
            ack_wait: How long to lease them; None takes the consumer's setting.
            shorten: Also allow a lease to end earlier. Without it, a lease is never shortened.
            connection: Your own connection.

        Returns:
            How many are leased until then, or longer already. A lease that has expired is not extended once that was noticed.
        """
        ids = ack_ids(deliveries)
        if not ids:
            return 0
        call = operations.extend(self.stream, self.name, ids, ack_wait=ack_wait, shorten=shorten)
        return self._transport.run(call, connection)

    def terminate(
        self, deliveries: Deliveries, *, reason: str | None = None, connection: OwnConnection | None = None
    ) -> int:
        """Make deliveries dead letters at once.

        Returns:
            How many counted, as for `ack`.
        """
        ids = ack_ids(deliveries)
        if not ids:
            return 0
        return self._transport.run(operations.terminate(self.stream, self.name, ids, reason=reason), connection)

    def run(
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
                the exception says: `postbus.Retry`, `postbus.Reject`, or any other. To return or raise `postbus.Defer` defers.
            concurrency: How many messages are handled at the same time.
            prefetch: How many more may wait in the worker; None takes as many as are handled soon.
            ack_wait: How long deliveries are leased and each heartbeat extends them; None takes the consumer's setting.
            handler_timeout: How long the handler may take for a message before it counts as failed; None sets no limit.
            backoff: How long a message waits after its first, second, … failure. None takes the consumer's setting and, if it has
                none, 1 second at first, then twice as long each time, up to 5 minutes.
            transaction: Give the handler a connection, in a transaction that commits with the ack or rolls back.
            stop_when_empty: Return when there is nothing left to receive. Messages that wait for a retry are left.
            grace: How long handlers may continue after a stop.
            install_signal_handlers: Let SIGTERM and SIGINT stop it, in the main thread. A second signal exits at once.

        Returns:
            Counts of what the worker did. A `postbus.Worker` can also be stopped by its `stop`.

        Raises:
            InvalidInput: An argument is not valid.
        """
        # Most programs have no worker.
        from postbus.worker._sync.worker import Worker

        worker = Worker(
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
        return worker.run()

    def info(self) -> ConsumerInfo:
        """Its settings."""
        return self._transport.run(consumers.info(self.stream, self.name))

    def alter(self, *, unset: tuple[str, ...] = (), **settings: Unpack[ConsumerChanges]) -> None:
        """Change settings. The order cannot be changed.

        Args:
            unset: Names of settings to put back to none: max_deliver, backoff, retain_dead, max_per_key, expire_after,
                keep_history, dead_letters_to, filter, or a part of it (filter_key_pattern, filter_headers, filter_headers_not,
                filter_data).
            settings: See `postbus.ConsumerSettings`. None leaves a setting as it is. A filter holds for messages that were not
                delivered yet; its parts that are None stay as they are. Messages that a filter has passed over do not come back.

        Raises:
            InvalidInput: A value is not allowed.
        """
        call = consumers.alter(self.stream, self.name, given(ConsumerChanges, settings), unset)
        self._transport.run(call)

    def pause(self) -> None:
        """Deliver no more messages until `resume`. Messages in flight can still be acked."""
        self._transport.run(consumers.pause(self.stream, self.name))

    def resume(self) -> None:
        """Resume after `pause`."""
        self._transport.run(consumers.resume(self.stream, self.name))

    def seek(
        self, start: Start | None = None, *, from_seq: int | None = None, from_time: datetime | None = None
    ) -> int:
        """Move to another position. Messages in flight or waiting are given up, and their acks do not count.

        Args:
            start: "earliest" (the oldest stored message) or "latest" (messages published from now on).
            from_seq: The message to continue with.
            from_time: Continue with messages published at or after this time.

        Returns:
            The seq after which it continues.

        Raises:
            InvalidInput: Not exactly one position was given.
        """
        call = consumers.seek(self.stream, self.name, start=start, from_seq=from_seq, from_time=from_time)
        return self._transport.run(call)

    def stats(self) -> ConsumerStats:
        """Its progress: lag, in flight, waiting, dead, by partition and in total."""
        return self._transport.run(consumers.stats(self.stream, self.name))

    def history(
        self, *, outcome: Outcome | None = None, before_time: datetime | None = None, max_messages: int = 100
    ) -> list[HistoryEntry]:
        """The outcomes of its past deliveries, newest first, kept for `keep_history`.

        Args:
            outcome: Only acked, failed or dead ones.
            before_time: Only deliveries that finished before this time; for the next page, the last `finished_at`.
            max_messages: The largest number of results, 1 to 10,000.
        """
        call = consumers.history(
            self.stream, self.name, outcome=outcome, before_time=before_time, max_messages=max_messages
        )
        return self._transport.run(call)

    def peek(
        self,
        *,
        state: State | None = None,
        key_pattern: str | None = None,
        after_seq: int = 0,
        max_messages: int = 100,
    ) -> list[Peeked]:
        """Messages as it sees them, in order of seq. Nothing changes.

        Args:
            state: Only those available, delivered, waiting or dead.
            key_pattern: Only messages whose key matches.
            after_seq: Only messages above this seq; for the next page, the last seq.
            max_messages: The largest number of results, 1 to 10,000.
        """
        call = consumers.peek(
            self.stream,
            self.name,
            state=state,
            key_pattern=key_pattern,
            after_seq=after_seq,
            max_messages=max_messages,
        )
        return self._transport.run(call)

    def peek_at(self, seq: int) -> Peeked | None:
        """The message with this seq as it sees it. Nothing changes.

        None means that the message is done: it was finished, or skipped by a filter, a seek or its time to live. None is also the
        result for a seq without a message. It is cheap however long the backlog is.
        """
        return self._transport.run(consumers.peek_at(self.stream, self.name, seq))

    def wait_until_done(self, seq: int, *, timeout: float | timedelta = 30) -> Completion:
        """Wait until it has finished a message. It asks again and again, at most half a second apart; over HTTP, the server does.

        Args:
            seq: The message's seq, once its publish is committed. A message that the consumer skips, and a seq without a message,
                count as done.
            timeout: How many seconds to wait.

        Returns:
            "done", "dead" if the message has become a dead letter, or "timeout".
        """
        started = time.monotonic()
        limit = as_seconds(timeout) or 0.0
        while True:
            left = max(0.0, started + limit - time.monotonic())
            call = consumers.peek_at(self.stream, self.name, seq, wait=min(left, _POLL_SECONDS))
            message = self._transport.run(call)
            if message is None or message.state == "dead":
                return "done" if message is None else "dead"
            waited = time.monotonic() - started
            if waited >= limit:
                return "timeout"
            sleep(min(max(waited / 10, _SHORTEST_PAUSE), _LONGEST_PAUSE, limit - waited))

    def drop(self) -> None:
        """Remove the consumer with its position, leases and dead letters."""
        self._transport.run(consumers.drop(self.stream, self.name))

"""A worker: receives messages, calls a handler for each, and acks or nacks them.

The receive loop is in this module: each of its calls acks finished messages and receives as many new ones as there is capacity
for. Handler slots (handling.py) run the handler. The heartbeat (heartbeat.py) extends leases. They share the inbox (inbox.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from postbus.model.consumer import Backoff, ConsumerInfo
from postbus.model.duration import as_seconds
from postbus.model.errors import InvalidInput, Unavailable
from postbus.model.outcome import DEFAULT_BACKOFF, WorkSummary
from postbus.transport._sync.base import Transport
from postbus.transport.separate import open_separately
from postbus.worker._async.handling import FIRST_PAUSE, LONGEST_PAUSE, AsyncHandling
from postbus.worker._async.source import AsyncMessageSource
from postbus.worker._async.wakeup import AsyncReceiverWakeup
from postbus.worker.counters import Counters
from postbus.worker.executor import AsyncExecutor
from postbus.worker.heartbeat import Heartbeat, LeaseExtender
from postbus.worker.inbox import Inbox
from postbus.worker.tasks import Acks, Task

_log = logging.getLogger("postbus.worker")

# How long one wait for messages lasts at most.
_POLL_SECONDS: Final = 60.0
# After a second stop, the worker may still take this long to return its messages.
_LEAVING_SECONDS: Final = 2.0
_LONG: Final = 3600.0


class AsyncWorker:
    """Handles the messages of a consumer; `consumer.run` is the short way to use one. It runs once.

    Args:
        consumer: The consumer.
        handler: Called with each delivery, and with a connection if there is a transaction. Returning acks; raising fails, as the
            exception says: `postbus.Retry`, `postbus.Reject`, or any other.
        concurrency: How many messages are handled at the same time.
        prefetch: How many more may wait in the worker at most. Never more than what is handled in a second, or in a third of
            `ack_wait` if that is shorter; None sets no other limit.
        ack_wait: How long deliveries are leased, and by how much each heartbeat extends them; None takes the consumer's setting.
        handler_timeout: How long the handler may take for a message, which then counts as failed. None: any time.
        backoff: How long a message waits after its first, second, … failure. None takes the consumer's setting and, if it has
            none, 1 second at first, then twice as long each time, up to 5 minutes.
        transaction: Give the handler a connection, in a transaction that commits with the ack or rolls back.
        stop_when_empty: Return when there is nothing left to receive; messages that wait for a retry are left.
        grace: How long handlers may go on after a stop.
        install_signal_handlers: Let SIGTERM and SIGINT stop it, if it runs in the main thread. A second one: leave at once.

    Raises:
        InvalidInput: An argument is not allowed.
    """

    def __init__(
        self,
        consumer: AsyncMessageSource,
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
    ) -> None:
        if concurrency < 1:
            raise InvalidInput(f"concurrency = {concurrency} is less than 1")
        if prefetch is not None and not 0 <= prefetch <= 9000:
            raise InvalidInput(f"prefetch = {prefetch} is not between 0 and 9000")
        self._consumer = consumer
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._ack_wait = as_seconds(ack_wait)
        self._handler_timeout = as_seconds(handler_timeout)
        self._backoff = backoff
        self._stop_when_empty = stop_when_empty
        self._grace = as_seconds(grace) or 0.0
        self._executor = AsyncExecutor(handler, catch_signals=install_signal_handlers, with_transaction=transaction)
        self._transactions = consumer.transport.transactions() if transaction else None
        self._waiting = consumer.transport.waiting(consumer.stream, consumer.name)
        self._wakeup = AsyncReceiverWakeup(self._waiting)
        self._counters = Counters()
        self._inbox: Inbox
        self._info: ConsumerInfo
        self._handling: AsyncHandling
        self._scanned: list[int] | None = None
        self._stop_count = 0
        self._is_unreachable = False
        self._failures = 0

    async def run(self) -> WorkSummary:
        """Work until `stop`.

        Returns:
            What was done.

        Raises:
            NotFound: The stream or the consumer does not exist, or was dropped.
        """
        self._info = await self._consumer.info()
        if self._ack_wait is None:
            self._ack_wait = self._info.ack_wait.total_seconds()
        if self._backoff is None and not self._info.backoff:
            self._backoff = DEFAULT_BACKOFF
        self._inbox = Inbox(
            self._info.order,
            concurrency=self._concurrency,
            prefetch=self._prefetch,
            ack_wait=self._ack_wait,
            handler_timeout=self._handler_timeout,
            has_levels=self._info.fair or await self._has_levels(),
        )
        self._handling = AsyncHandling(
            self._consumer,
            self._inbox,
            executor=self._executor,
            wakeup=self._wakeup,
            counters=self._counters,
            returns_later_tasks=self._info.order == "partition",
            backoff=self._backoff,
            handler_timeout=self._handler_timeout,
            transactions=self._transactions,
        )
        heartbeat = Heartbeat(
            LeaseExtender(self._transport_for_heartbeats, self._consumer.stream, self._consumer.name),
            self._ack_wait,
            self._inbox,
            overdue=lambda task: self._executor.call_soon(lambda: self._handling.on_overdue(task)),
            lost=lambda task: self._executor.call_soon(lambda: self._handling.on_lost(task)),
            confirmed=lambda: self._executor.call_soon(self._handling.start_tasks),
        )
        heartbeat.start()
        try:
            await self._executor.run(self._receive_loop, self._stop)
        finally:
            self._handling.close()
            heartbeat.stop()
            if self._transactions is not None:
                await self._transactions.close()
        self._counters.add(lost=heartbeat.lost_count)
        return self._counters.summary()

    async def _has_levels(self) -> bool:
        with suppress(Unavailable):
            return len((await self._consumer.stats()).by_priority) > 1
        return False

    def stop(self) -> None:
        """Stop receiving, let handlers finish within `grace`, return the other messages, and end `run`.

        Safe to use from any thread and from signal handlers. The second call ends `run` at once.
        """
        self._executor.call_soon(self._stop)

    def _stop(self) -> None:
        self._stop_count += 1
        if self._stop_count == 1:
            _log.info("the worker of %s/%s stops", self._consumer.stream, self._consumer.name)
        else:
            self._handling.close()
            self._executor.expire(_LEAVING_SECONDS)
        self._wakeup.notify()

    async def _receive_loop(self) -> None:
        while not self._stop_count and not await self._is_done():
            capacity = self._inbox.capacity()
            flush_in = self._inbox.flush_in()
            if capacity and (self._wakeup.may_have_more or flush_in == 0.0):
                await self._receive(capacity)
            elif flush_in == 0.0:
                await self._flush()
                self._wakeup.may_have_more = True
            elif capacity and not self._stop_when_empty:
                await self._wait_for_messages(_POLL_SECONDS if flush_in is None else flush_in)
            else:
                capacity_in = None if capacity else self._inbox.capacity_in()
                await self._wakeup.wait(min(each for each in (flush_in, capacity_in, _LONG) if each is not None))
        await self._leave()

    def _transport_for_heartbeats(self) -> Transport:
        timeout = max(1.0, min(30.0, (self._ack_wait or 0.0) / 3))
        transport = self._consumer.transport
        return open_separately(transport.url, token=transport.token, connect_timeout=timeout)

    async def _is_done(self) -> bool:
        """Whether nothing is left, in a worker that stops when empty."""
        if not self._stop_when_empty or self._wakeup.may_have_more or not self._inbox.is_empty():
            return False
        if not _has_filter(self._info):
            return True
        # A receive that found nothing may have scanned only a part. If it has moved on since, there may be more.
        try:
            stats = await self._consumer.stats()
        except Unavailable as error:
            await self._pause(error)
            return False
        scanned = [partition.position_seq for partition in stats.partitions]
        self._wakeup.may_have_more = scanned != self._scanned
        self._scanned = scanned
        return not self._wakeup.may_have_more

    async def _receive(self, capacity: int) -> None:
        is_idle = self._inbox.is_empty() and not self._stop_when_empty
        acks = self._inbox.take_acks()
        asked_at = time.monotonic()
        # A slot that ends a delivery meanwhile sets it again.
        self._wakeup.may_have_more = False
        try:
            batch = await self._consumer.receive(
                min(capacity, 10_000),
                ack=None if acks is None else acks.ids,
                wait=self._waiting.receive_wait(self._ack_wait or 0.0) if is_idle else 0.0,
                ack_wait=self._ack_wait,
            )
        except Unavailable as error:
            self._wakeup.may_have_more = True
            self._put_back(acks)
            await self._pause(error)
            return
        self._count(acks, batch.acked_count)
        if batch:
            self._wakeup.may_have_more = True
            self._waiting.note_received()
        self._inbox.add(batch, asked_at)
        self._handling.start_tasks()

    async def _flush(self) -> None:
        acks = self._inbox.take_acks()
        if acks is None:
            return
        try:
            self._count(acks, await self._consumer.ack(acks.ids))
        except Unavailable as error:
            self._put_back(acks)
            await self._pause(error)

    def _put_back(self, acks: Acks | None) -> None:
        if acks is not None:
            self._inbox.acks_failed(acks)

    def _count(self, acks: Acks | None, acked_count: int) -> None:
        if self._is_unreachable:
            self._is_unreachable = False
            _log.info("messages can be received again")
        self._failures = 0
        if acks is None:
            return
        self._inbox.acks_sent(acks)
        self._counters.add(acked=acked_count)
        if acked_count < acks.count:
            _log.warning("%d of %d acks did not count: their leases had ended", acks.count - acked_count, acks.count)

    async def _pause(self, error: Unavailable) -> None:
        """Wait after a call that did not reach Postgres, longer each time. A stop ends the wait."""
        if not self._is_unreachable:
            self._is_unreachable = True
            _log.warning("messages cannot be received, trying again: %s", error.message)
        end = time.monotonic() + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures, 10))
        self._failures += 1
        stop_count = self._stop_count
        while (left := end - time.monotonic()) > 0 and self._stop_count == stop_count:
            await self._wakeup.wait(left)

    async def _wait_for_messages(self, seconds: float) -> None:
        """Wait until there may be messages, or something else to do."""

        def is_idle() -> bool:
            return not self._stop_count and (seconds < _POLL_SECONDS or self._inbox.flush_in() is None)

        try:
            if await self._waiting.wait(seconds, is_idle):
                self._wakeup.may_have_more = True
        except Unavailable as error:
            await self._pause(error)

    async def _leave(self) -> None:
        """Return the tasks that wait, give running handlers their grace time, and send the last acks."""
        end = time.monotonic() + self._grace
        await self._return(self._inbox.withdraw(), untried=True)
        while self._inbox.running_count() and self._stop_count < 2 and (left := end - time.monotonic()) > 0:
            flush_in = self._inbox.flush_in()
            if flush_in == 0.0:
                await self._flush()
            else:
                await self._wakeup.wait(left if flush_in is None else min(left, flush_in))
        rest = self._inbox.withdraw(running=True)
        for task in rest:
            self._handling.abandon(task)
        await self._return(rest, untried=False)
        if (acks := self._inbox.take_acks()) is not None:
            await self._try(lambda: self._send(acks))

    async def _send(self, acks: Acks) -> None:
        self._count(acks, await self._consumer.ack(acks.ids))

    async def _return(self, tasks: list[Task], *, untried: bool) -> None:
        if tasks:
            deliveries = [task.delivery for task in tasks]
            reason = "the worker stopped"
            await self._try(lambda: self._consumer.nack(deliveries, delay=0, reason=reason, untried=untried))

    async def _try(self, call: Callable[[], Any]) -> None:
        """Call at most twice. A message that cannot be returned is redelivered when its lease ends."""
        try:
            try:
                await call()
            except Unavailable:
                await call()
        except Unavailable as error:
            _log.warning("a message could not be acked or returned before the worker left: %s", error.message)


def _has_filter(info: ConsumerInfo) -> bool:
    parts = (info.filter_key_pattern, info.filter_headers, info.filter_headers_not, info.filter_data)
    return any(part is not None for part in parts)

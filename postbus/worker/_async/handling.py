"""Runs the handler for one delivery after another, and acks, nacks, defers or rejects each by its outcome."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

from postbus import tracing
from postbus._compat import async_sleep
from postbus.db._async.transactions import AsyncTransactions, abort_connection
from postbus.model.consumer import Backoff
from postbus.model.errors import InvalidInput, TooLarge, Unavailable
from postbus.model.outcome import Defer, Reject, Retry, clean_reason, delay_after, reason_of
from postbus.worker._async.source import AsyncMessageSource
from postbus.worker._async.wakeup import AsyncReceiverWakeup
from postbus.worker.counters import Counters
from postbus.worker.executor import AsyncExecutor, HandlerCancelled
from postbus.worker.inbox import Inbox
from postbus.worker.tasks import Task

_log = logging.getLogger("postbus.worker")

# Pauses between attempts to reach Postgres.
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 5.0
# An extension so short that it changes nothing: its count tells what is still leased.
_NO_TIME: Final = 0.001


class _LeaseEnded(Exception):
    """The lease ended before the transaction could ack, so the transaction has to roll back."""


class AsyncHandling:
    """The handler slots of one worker.

    Args:
        consumer: The consumer.
        inbox: The deliveries to handle.
        executor: Runs the handler.
        wakeup: Wakes the receive loop.
        counters: Counts outcomes.
        returns_later_tasks: A failed message returns the later ones of its lane too.
        backoff: How long a message waits after a failure. None: as the consumer says.
        handler_timeout: How long the handler may take; only for log messages.
        transactions: Connections for the handler, if it takes one.
    """

    def __init__(
        self,
        consumer: AsyncMessageSource,
        inbox: Inbox,
        *,
        executor: AsyncExecutor,
        wakeup: AsyncReceiverWakeup,
        counters: Counters,
        returns_later_tasks: bool,
        backoff: Backoff | None,
        handler_timeout: float | None,
        transactions: AsyncTransactions | None,
    ) -> None:
        self._consumer = consumer
        self._inbox = inbox
        self._executor = executor
        self._wakeup = wakeup
        self._counters = counters
        self._returns_later_tasks = returns_later_tasks
        self._backoff = backoff
        self._too_long = f"the handler took longer than {handler_timeout} s"
        self._transactions = transactions
        self._chance = random.Random()  # noqa: S311
        self._is_over = False

    def start_tasks(self) -> None:
        """Start every task for which there is a slot."""
        while (task := self._inbox.start_next()) is not None:
            self._executor.start(self._work, task)
        self._wakeup.notify()

    def close(self) -> None:
        """Stop retrying calls that do not reach Postgres."""
        self._is_over = True

    def abandon(self, task: Task) -> None:
        """Nobody wants the outcome of a handler: cancel it, or abort its transaction."""
        if not self._executor.cancel(task):
            _abort(task)

    def on_lost(self, task: Task) -> None:
        """The lease of a task has ended."""
        if task.state == "running":
            self.abandon(task)

    def on_overdue(self, task: Task) -> None:
        """A handler has taken too long. One that cannot be cancelled is left alone, and another slot replaces its own."""
        if task.state == "running" and not self._executor.cancel(task) and self._inbox.finish(task):
            _log.warning("message %d: %s, and its thread cannot be stopped", task.delivery.seq, self._too_long)
            _abort(task)
            self._executor.start(self._replace, task)

    async def _replace(self, task: Task) -> None:
        await self._fail(task, self._too_long, None)
        if (following := self._inbox.start_next()) is not None:
            await self._work(following)
        self._wakeup.notify()

    async def _work(self, first: Task) -> None:
        """Handle one task after another, until none is ready."""
        task: Task | None = first
        while task is not None:
            if not await self._process(task):
                return  # The task was given up, and another slot has replaced this one.
            task = self._inbox.start_next()
        self._wakeup.notify_slot_free()

    async def _process(self, task: Task) -> bool:
        """Handle one task and record its outcome. Returns whether this slot may take another."""
        error: BaseException | None = None
        try:
            if tracing.is_on():
                with tracing.processing(self._consumer.stream, self._consumer.name, task.delivery):
                    await self._handle(task)
            else:
                await self._handle(task)
        except (Exception, SystemExit) as raised:
            error = raised
        is_wanted = task.is_finished or self._inbox.finish(task)
        if is_wanted:
            task.connection = None
            await self._record(task, error)
        return is_wanted

    async def _handle(self, task: Task) -> None:
        if self._transactions is None:
            task.deferral = _deferral(await self._executor.call_handler(task, task.delivery))
        else:
            await self._handle_in_transaction(task, self._transactions)

    async def _handle_in_transaction(self, task: Task, transactions: AsyncTransactions) -> None:
        async with transactions.begin() as connection:
            task.connection = connection
            task.deferral = _deferral(await self._executor.call_handler(task, task.delivery, connection))
            # From now on it cannot become overdue, so nobody returns a message that is being acked.
            task.is_finished = self._inbox.finish(task)
            if not task.is_finished or task.is_lost:
                raise _LeaseEnded
            if not await self._settle(task, connection):
                raise _LeaseEnded

    async def _settle(self, task: Task, connection: Any) -> int:
        """Ack a delivery in the handler's transaction, or defer it if the handler has returned that."""
        if task.deferral is None:
            return await self._consumer.ack(task.delivery, connection=connection)
        given = task.deferral
        return await self._consumer.defer(
            task.delivery, delay=given.delay, until=given.until, state=given.state, connection=connection
        )

    async def _record(self, task: Task, error: BaseException | None) -> None:
        """Ack, nack, defer or reject a delivery by the outcome of its handler."""
        delivery = task.delivery
        if task.is_lost:
            self._inbox.remove(task)
            return
        if error is None and task.deferral is None:
            self._ack(task)
            return
        if error is None and self._transactions is not None:
            self._counters.add(deferred=1)
            await self._end(task, is_failed=True)
        elif isinstance(deferral := task.deferral if error is None else error, Defer):
            await self._defer(task, deferral)
        elif isinstance(error, _LeaseEnded):
            self._counters.add(lost=1)
            _log.warning("the transaction of message %d was rolled back: its lease had ended", delivery.seq)
            await self._end(task)
        elif isinstance(error, Reject):
            reason = clean_reason(error.reason)
            self._counters.add(
                rejected=await self._retry(task, lambda: self._consumer.terminate(delivery, reason=reason))
            )
            await self._end(task)
        elif isinstance(error, Retry):
            await self._fail(task, clean_reason(error.reason), error.delay)
        elif isinstance(error, HandlerCancelled):
            await self._fail(task, self._too_long, None)
        elif error is not None:
            _log.warning("message %d failed, attempt %d", delivery.seq, delivery.attempt, exc_info=error)
            await self._fail(task, reason_of(error), None)
        self._wakeup.notify()

    def _ack(self, task: Task) -> None:
        if self._transactions is None:
            if self._inbox.queue_ack(task):
                self._wakeup.notify()
        else:
            self._counters.add(acked=1)
            self._wakeup.may_have_more = True
            self._inbox.remove(task)
            self._wakeup.notify()

    async def _fail(self, task: Task, reason: str, delay: float | timedelta | None) -> None:
        delivery = task.delivery
        if delay is None and self._backoff is not None:
            delay = delay_after(self._backoff, delivery.attempt, self._chance)
        nack = partial(self._consumer.nack, delivery, delay=delay, reason=reason)
        self._counters.add(failed=await self._retry(task, nack))
        await self._end(task, is_failed=True)

    async def _defer(self, task: Task, deferral: Defer) -> None:
        defer = partial(
            self._consumer.defer, task.delivery, delay=deferral.delay, until=deferral.until, state=deferral.state
        )
        try:
            self._counters.add(deferred=await self._retry(task, defer))
        except (InvalidInput, TooLarge) as error:
            # Such as a state that is too large: the handler's mistake.
            _log.warning("message %d failed, attempt %d", task.delivery.seq, task.delivery.attempt, exc_info=error)
            await self._fail(task, reason_of(error), None)
        else:
            await self._end(task, is_failed=True)

    async def _end(self, task: Task, *, is_failed: bool = False) -> None:
        """Remove a task that was not acked, and find out whether the later ones of its lane are still leased."""
        later = self._inbox.later_tasks(task)
        if later:
            held_count = await self._retry(task, lambda: self._count_leased(later))
            if held_count and is_failed and self._returns_later_tasks:
                reason = "an earlier message of its partition is not done"
                deliveries = [other.delivery for other in later]
                await self._retry(task, lambda: self._consumer.nack(deliveries, reason=reason, untried=True))
                held_count = 0
            if not held_count:
                self._inbox.drop(later)
            elif held_count < len(later):
                self._inbox.drop(
                    [other for other in later if not await self._retry(task, partial(self._count_leased, [other]))]
                )
        self._wakeup.may_have_more = True
        self._inbox.remove(task)

    async def _count_leased(self, tasks: list[Task]) -> int:
        """How many of these tasks are still leased."""
        return await self._consumer.extend([task.delivery for task in tasks], ack_wait=_NO_TIME)

    async def _retry(self, task: Task, call: Callable[[], Any]) -> int:
        """Call until Postgres answers, the lease is lost, or the worker leaves."""
        pause = FIRST_PAUSE
        while not task.is_lost and not self._is_over:
            try:
                return int(await call())
            except Unavailable:
                await async_sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        return 0


def _deferral(returned: Any) -> Defer | None:
    return returned if isinstance(returned, Defer) else None


def _abort(task: Task) -> None:
    if (connection := task.connection) is not None:
        abort_connection(connection)

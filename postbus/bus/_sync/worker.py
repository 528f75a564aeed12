# Generated from postbus/bus/_async/worker.py by `make generate`; edit that file.

"""A worker: receives messages, calls a handler for each, and settles them by what the handler did.

A clerk speaks with the bus: each of its calls acks what is done and receives what there is room for. Slots call the handler, and
go from one message to the next as long as there is one. A minder extends leases. What they share is the hand.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from postbus import tracing
from postbus.bus import rows
from postbus.bus.crew import Crew, GivenUp
from postbus.bus.hand import Acks, Hand, Job
from postbus.bus.minder import Minder
from postbus.bus.signals import Signal, sleep
from postbus.db._sync.transactions import Transactions, cut
from postbus.model.consumer import Backoff, ConsumerInfo
from postbus.model.errors import InvalidInput, Unavailable
from postbus.model.outcome import (
    DEFAULT_BACKOFF,
    Reject,
    Retry,
    WorkSummary,
    clean_reason,
    delay_after,
    reason_of,
)

if TYPE_CHECKING:
    from postbus.bus._sync.consumer import Consumer

_log = logging.getLogger("postbus.worker")

# How long one wait for messages lasts; it is not noticed from outside.
_POLL_SECONDS: Final = 60.0
# Pauses between attempts to reach Postgres.
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0
# How long a worker that was told twice to stop may still take to give back what it has.
_LEAVING_SECONDS: Final = 2.0
# An extension so short that it changes nothing: it only says what is still leased.
_ASK: Final = 0.001
_LONG: Final = 3600.0


class _LeaseEnded(Exception):
    """The ack of a transaction did not count, so the transaction must not either."""


class Worker:
    """Handles the messages of a consumer; `consumer.run` is the short way to use one. It runs once.

    Args:
        consumer: Whose messages.
        handler: Called with each delivery, and with a connection if there is a transaction. Returning acks; raising fails, as the
            exception says: `postbus.Retry`, `postbus.Reject`, or any other.
        concurrency: How many messages are handled at the same time.
        prefetch: How many more may wait in the worker at most. Never more than what is handled in a second, or in a third of
            `ack_wait` if that is shorter; None sets no other limit.
        ack_wait: How long deliveries are leased, and by how much each heartbeat extends them; None takes the consumer's setting.
        handler_timeout: How long the handler may take for a message, which has failed then; None for ever.
        backoff: How long a message waits after its first, second, … failure. None takes the consumer's setting and, if it has
            none, 1 second at first, then twice as long each time, up to 5 minutes.
        transaction: Give the handler a connection, in a transaction that commits with the ack or rolls back.
        stop_when_empty: Return when there is nothing left to receive; messages that wait for another delivery are left.
        grace: How long handlers may go on after a stop.
        install_signal_handlers: Let SIGTERM and SIGINT stop it, if it runs in the main thread. A second one: leave at once.

    Raises:
        InvalidInput: An argument is not allowed.
    """

    def __init__(
        self,
        consumer: Consumer,
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
        self._ack_wait = _seconds(ack_wait)
        self._handler_timeout = _seconds(handler_timeout)
        self._backoff = backoff
        self._stop_when_empty = stop_when_empty
        self._grace = _seconds(grace) or 0.0
        self._crew = Crew(handler, catch_signals=install_signal_handlers, with_transaction=transaction)
        self._transactions = consumer._bus._transactions() if transaction else None
        self._watch = consumer._watch()
        self._chance = random.Random()  # noqa: S311
        self._signal = Signal()
        self._hand: Hand
        self._info: ConsumerInfo
        self._minder: Minder
        self._may_be_more = True
        self._scanned: list[int] | None = None
        self._stop_count = 0
        self._is_over = False
        self._is_unreachable = False
        self._lock = threading.Lock()
        self._failures = 0
        self._acked_count = self._failed_count = self._rejected_count = self._lost_count = 0

    def run(self) -> WorkSummary:
        """Work until it is told to stop.

        Returns:
            What was done.

        Raises:
            NotFound: The stream or the consumer does not exist, or was dropped.
        """
        self._info = self._consumer.info()
        if self._ack_wait is None:
            self._ack_wait = self._info.ack_wait.total_seconds()
        if self._backoff is None and not self._info.backoff:
            self._backoff = DEFAULT_BACKOFF
        self._hand = Hand(
            self._info.order,
            concurrency=self._concurrency,
            prefetch=self._prefetch,
            ack_wait=self._ack_wait,
            handler_timeout=self._handler_timeout,
        )
        self._minder = Minder(
            self._consumer._lifeline(connect_timeout=max(1.0, min(30.0, self._ack_wait / 3))),
            self._ack_wait,
            self._hand,
            overdue=lambda job: self._crew.call(lambda: self._end_overdue(job)),
            lost=lambda job: self._crew.call(lambda: self._end_lost(job)),
            held=lambda: self._crew.call(self._go_on),
        )
        self._minder.start()
        try:
            self._crew.oversee(self._tend, self._stop)
        finally:
            self._is_over = True
            self._minder.stop()
            if self._transactions is not None:
                self._transactions.close()
        return self._summary()

    def stop(self) -> None:
        """Receive no more, let handlers finish within `grace`, give back the rest, and return from `run`.

        From any thread, and from signal handlers. The second time: leave at once.
        """
        self._crew.call(self._stop)

    def _stop(self) -> None:
        self._stop_count += 1
        if self._stop_count == 1:
            _log.info("the worker of %s/%s stops", self._consumer.stream, self._consumer.name)
        else:
            self._crew.hurry(_LEAVING_SECONDS)
        self._wake_clerk()

    # The clerk.

    def _tend(self) -> None:
        while not self._stop_count and not self._is_done():
            room = self._hand.room()
            flush_in = self._hand.flush_in()
            if room and (self._may_be_more or flush_in == 0.0):
                self._receive(room)
            elif flush_in == 0.0:
                self._flush()
                self._may_be_more = True
            elif room and not self._stop_when_empty:
                self._wait_for_messages(_POLL_SECONDS if flush_in is None else flush_in)
            else:
                room_in = None if room else self._hand.room_in()
                self._signal.wait(min(each for each in (flush_in, room_in, _LONG) if each is not None))
        self._leave()

    def _is_done(self) -> bool:
        """Whether there is nothing left, if that is what we work for."""
        if not self._stop_when_empty or self._may_be_more or not self._hand.is_empty():
            return False
        if not _has_filter(self._info):
            return True
        # A receive that found nothing may only have scanned a part. Where it came further, there may be more.
        try:
            stats = self._consumer.stats()
        except Unavailable as error:
            self._pause(error)
            return False
        scanned = [partition.position_seq for partition in stats.partitions]
        self._may_be_more = scanned != self._scanned
        self._scanned = scanned
        return not self._may_be_more

    def _receive(self, room: int) -> None:
        has_nothing_else = self._hand.is_empty() and not self._stop_when_empty
        acks = self._hand.take_acks()
        asked_at = time.monotonic()
        # Whoever settles something meanwhile says so again.
        self._may_be_more = False
        try:
            batch = self._consumer.receive(
                min(room, 10_000),
                ack=None if acks is None else acks.ids,
                wait=self._watch.hold(self._ack_wait or 0.0) if has_nothing_else else 0.0,
                ack_wait=self._ack_wait,
            )
        except Unavailable as error:
            self._may_be_more = True
            self._put_back(acks)
            self._pause(error)
            return
        self._count(acks, batch.acked_count)
        if batch:
            self._may_be_more = True
            self._watch.received()
        self._hand.take(batch, asked_at)
        self._go_on()

    def _flush(self) -> None:
        acks = self._hand.take_acks()
        if acks is None:
            return
        try:
            self._count(acks, self._consumer.ack(acks.ids))
        except Unavailable as error:
            self._put_back(acks)
            self._pause(error)

    def _put_back(self, acks: Acks | None) -> None:
        if acks is not None:
            self._hand.not_sent(acks)

    def _count(self, acks: Acks | None, acked_count: int) -> None:
        if self._is_unreachable:
            self._is_unreachable = False
            _log.info("messages can be received again")
        self._failures = 0
        if acks is None:
            return
        self._hand.sent(acks)
        self._add(acked=acked_count)
        if acked_count < acks.count:
            _log.warning("%d of %d acks did not count: their leases had ended", acks.count - acked_count, acks.count)

    def _pause(self, error: Unavailable) -> None:
        """After a call that did not reach Postgres: wait a little, more each time. A stop ends it."""
        if not self._is_unreachable:
            self._is_unreachable = True
            _log.warning("messages cannot be received, trying again: %s", error.message)
        end = time.monotonic() + min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(self._failures, 10))
        self._failures += 1
        stop_count = self._stop_count
        while (left := end - time.monotonic()) > 0 and self._stop_count == stop_count:
            self._signal.wait(left)

    def _wait_for_messages(self, seconds: float) -> None:
        """Until there may be something to receive, or something else to do."""

        def is_idle() -> bool:
            return not self._stop_count and (seconds < _POLL_SECONDS or self._hand.flush_in() is None)

        try:
            if self._watch.wait(seconds, is_idle):
                self._may_be_more = True
        except Unavailable as error:
            self._pause(error)

    def _wake_clerk(self) -> None:
        self._signal.set()
        self._watch.interrupt()

    def _leave(self) -> None:
        """Give back what waits, let run what runs, for a while, and finish the accounts."""
        end = time.monotonic() + self._grace
        self._return(self._hand.give_back(), untried=True)
        while self._hand.running_count() and self._stop_count < 2 and (left := end - time.monotonic()) > 0:
            flush_in = self._hand.flush_in()
            if flush_in == 0.0:
                self._flush()
            else:
                self._signal.wait(left if flush_in is None else min(left, flush_in))
        rest = self._hand.give_back(running=True)
        for job in rest:
            if not self._crew.interrupt(job):
                _cut(job)
        self._return(rest, untried=False)
        if (acks := self._hand.take_acks()) is not None:
            self._try(lambda: self._send(acks))

    def _send(self, acks: Acks) -> None:
        self._count(acks, self._consumer.ack(acks.ids))

    def _return(self, jobs: list[Job], *, untried: bool) -> None:
        if jobs:
            deliveries = [job.delivery for job in jobs]
            reason = "the worker stopped"
            self._try(lambda: self._consumer.nack(deliveries, delay=0, reason=reason, untried=untried))

    def _try(self, call: Callable[[], Any]) -> None:
        """Twice at most: what cannot be given back goes to others when its lease ends."""
        try:
            try:
                call()
            except Unavailable:
                call()
        except Unavailable as error:
            _log.warning("something could not be settled before leaving: %s", error.message)

    # The slots.

    def _go_on(self) -> None:
        """Start what can be started."""
        while (job := self._hand.start()) is not None:
            self._crew.start(self._work, job)
        self._wake_clerk()

    def _work(self, first: Job) -> None:
        """Handle one message after another, until there is none."""
        job: Job | None = first
        while job is not None:
            if not self._do(job):
                return  # It was given up meanwhile, and another slot has gone on.
            job = self._hand.start()
        self._signal.set()

    def _do(self, job: Job) -> bool:
        """Handle a message and settle it. Returns whether this slot goes on."""
        error: BaseException | None = None
        try:
            if tracing.is_on():
                with tracing.processing(self._consumer.stream, self._consumer.name, job.delivery):
                    self._handle(job)
            else:
                self._handle(job)
        except (Exception, SystemExit) as raised:
            error = raised
        is_wanted = job.is_concluded or self._hand.conclude(job)
        if is_wanted:
            job.connection = None
            self._settle(job, error)
        return is_wanted

    def _handle(self, job: Job) -> None:
        if self._transactions is None:
            self._crew.handle(job, job.delivery)
        else:
            self._handle_in_transaction(job, self._transactions)

    def _handle_in_transaction(self, job: Job, transactions: Transactions) -> None:
        with transactions.begin() as connection:
            job.connection = connection
            self._crew.handle(job, job.delivery, connection)
            # From here on it cannot be overdue any more, so that nobody gives back what is being acked.
            job.is_concluded = self._hand.conclude(job)
            if not job.is_concluded or job.is_lost:
                raise _LeaseEnded
            if not self._consumer.ack(job.delivery, connection=connection):
                raise _LeaseEnded

    def _settle(self, job: Job, error: BaseException | None) -> None:
        """Do what the end of a handler asks for."""
        delivery = job.delivery
        if job.is_lost:
            self._hand.ended(job)
        elif error is None:
            self._ack(job)
        elif isinstance(error, _LeaseEnded):
            self._add(lost=1)
            _log.warning("the transaction of message %d was rolled back: its lease had ended", delivery.seq)
            self._end(job)
        elif isinstance(error, Reject):
            reason = clean_reason(error.reason)
            self._add(rejected=self._insist(job, lambda: self._consumer.terminate(delivery, reason=reason)))
            self._end(job)
        elif isinstance(error, Retry):
            self._fail(job, clean_reason(error.reason), error.delay)
        elif isinstance(error, GivenUp):
            self._fail(job, self._too_long(), None)
        else:
            _log.warning("message %d failed, attempt %d", delivery.seq, delivery.attempt, exc_info=error)
            self._fail(job, reason_of(error), None)
        self._wake_clerk_if(not job.is_lost and error is not None)

    def _ack(self, job: Job) -> None:
        if self._transactions is None:
            self._wake_clerk_if(self._hand.acked(job))
        else:
            self._add(acked=1)
            self._may_be_more = True
            self._hand.ended(job)
            self._wake_clerk()

    def _fail(self, job: Job, reason: str, delay: float | timedelta | None) -> None:
        delivery = job.delivery
        if delay is None and self._backoff is not None:
            delay = delay_after(self._backoff, delivery.attempt, self._chance)
        self._add(failed=self._insist(job, lambda: self._consumer.nack(delivery, delay=delay, reason=reason)))
        self._end(job, is_failed=True)

    def _end(self, job: Job, *, is_failed: bool = False) -> None:
        """Leave a message that was not acked, and find out whether those behind it are still ours."""
        behind = self._hand.behind(job)
        if behind:
            held_count = self._insist(job, lambda: self._ask(behind))
            if held_count and is_failed and self._info.order == "partition":
                reason = "an earlier message of its partition failed"
                deliveries = [other.delivery for other in behind]
                self._insist(job, lambda: self._consumer.nack(deliveries, reason=reason, untried=True))
                held_count = 0
            if not held_count:
                self._hand.drop(behind)
            elif held_count < len(behind):
                self._hand.drop([other for other in behind if not self._insist(job, partial(self._ask, [other]))])
        self._may_be_more = True
        self._hand.ended(job)

    def _ask(self, jobs: list[Job]) -> int:
        """How many of them are still leased."""
        return self._consumer.extend([job.delivery for job in jobs], ack_wait=_ASK)

    def _insist(self, job: Job, call: Callable[[], Any]) -> int:
        """Call until Postgres answers, or nobody wants to know any more."""
        pause = _FIRST_PAUSE
        while not job.is_lost and not self._is_over and self._stop_count < 2:
            try:
                return int(call())
            except Unavailable:
                sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        return 0

    def _end_overdue(self, job: Job) -> None:
        """A handler has taken too long. If it cannot be told, it is left alone, and another slot takes its place."""
        if job.state == "running" and not self._crew.interrupt(job) and self._hand.conclude(job):
            _log.warning("message %d: %s, and its thread cannot be stopped", job.delivery.seq, self._too_long())
            _cut(job)
            self._crew.start(self._replace, job)

    def _replace(self, job: Job) -> None:
        self._fail(job, self._too_long(), None)
        if (following := self._hand.start()) is not None:
            self._work(following)
        self._wake_clerk()

    def _end_lost(self, job: Job) -> None:
        """What a handler does is for nothing."""
        if job.state == "running" and not self._crew.interrupt(job):
            _cut(job)

    def _too_long(self) -> str:
        return f"the handler took longer than {self._handler_timeout} s"

    def _wake_clerk_if(self, is_needed: bool) -> None:
        if is_needed:
            self._wake_clerk()

    def _add(self, *, acked: int = 0, failed: int = 0, rejected: int = 0, lost: int = 0) -> None:
        with self._lock:
            self._acked_count += acked
            self._failed_count += failed
            self._rejected_count += rejected
            self._lost_count += lost

    def _summary(self) -> WorkSummary:
        return WorkSummary(
            acked_count=self._acked_count,
            failed_count=self._failed_count,
            rejected_count=self._rejected_count,
            lost_count=self._lost_count + self._minder.lost_count,
        )


def _cut(job: Job) -> None:
    if (connection := job.connection) is not None:
        cut(connection)


def _seconds(duration: float | timedelta | None) -> float | None:
    exact = rows.seconds(duration)
    return None if exact is None else exact.total_seconds()


def _has_filter(info: ConsumerInfo) -> bool:
    parts = (info.filter_key_pattern, info.filter_headers, info.filter_headers_not, info.filter_data)
    return any(part is not None for part in parts)

# Generated from postbus/bus/_async/slots.py by `make generate`; edit that file.

"""The slots of a worker: each calls the handler for one message after another, and settles it by what the handler did."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from postbus import tracing
from postbus.bus._sync.bell import Bell
from postbus.bus.crew import Crew, GivenUp
from postbus.bus.hand import Hand, Job
from postbus.bus.signals import sleep
from postbus.bus.tally import Tally
from postbus.db._sync.transactions import Transactions, cut
from postbus.model.consumer import Backoff
from postbus.model.errors import Unavailable
from postbus.model.outcome import Reject, Retry, clean_reason, delay_after, reason_of

if TYPE_CHECKING:
    from postbus.bus._sync.consumer import Consumer

_log = logging.getLogger("postbus.worker")

# Pauses between attempts to reach Postgres.
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 5.0
# An extension so short that it changes nothing: it only says what is still leased.
_ASK: Final = 0.001


class _LeaseEnded(Exception):
    """The ack of a transaction did not count, so the transaction must not either."""


class Slots:
    """Handles what is in hand.

    Args:
        consumer: Whose messages they are.
        hand: What is in hand.
        crew: Who does it.
        bell: How the clerk is called.
        tally: Where outcomes are counted.
        gives_back_behind: Whether a failed message takes those behind it in its lane along.
        backoff: How long a message waits after a failure; None leaves it to the consumer.
        handler_timeout: How long the handler may take, for messages about it.
        transactions: Where the handler's connections come from, if it gets one.
    """

    def __init__(
        self,
        consumer: Consumer,
        hand: Hand,
        *,
        crew: Crew,
        bell: Bell,
        tally: Tally,
        gives_back_behind: bool,
        backoff: Backoff | None,
        handler_timeout: float | None,
        transactions: Transactions | None,
    ) -> None:
        self._consumer = consumer
        self._hand = hand
        self._crew = crew
        self._bell = bell
        self._tally = tally
        self._gives_back_behind = gives_back_behind
        self._backoff = backoff
        self._too_long = f"the handler took longer than {handler_timeout} s"
        self._transactions = transactions
        self._chance = random.Random()  # noqa: S311
        self._is_over = False

    def go_on(self) -> None:
        """Start what can be started."""
        while (job := self._hand.start()) is not None:
            self._crew.start(self._work, job)
        self._bell.ring()

    def close(self) -> None:
        """Nobody waits any more for what cannot be settled at once."""
        self._is_over = True

    def abandon(self, job: Job) -> None:
        """What its handler does is for nothing: tell it, or end its transaction."""
        if not self._crew.interrupt(job):
            _cut(job)

    def end_lost(self, job: Job) -> None:
        """The lease of a message has ended."""
        if job.state == "running":
            self.abandon(job)

    def end_overdue(self, job: Job) -> None:
        """A handler has taken too long. If it cannot be told, it is left alone, and another slot takes its place."""
        if job.state == "running" and not self._crew.interrupt(job) and self._hand.conclude(job):
            _log.warning("message %d: %s, and its thread cannot be stopped", job.delivery.seq, self._too_long)
            _cut(job)
            self._crew.start(self._replace, job)

    def _replace(self, job: Job) -> None:
        self._fail(job, self._too_long, None)
        if (following := self._hand.start()) is not None:
            self._work(following)
        self._bell.ring()

    def _work(self, first: Job) -> None:
        """Handle one message after another, until there is none."""
        job: Job | None = first
        while job is not None:
            if not self._do(job):
                return  # It was given up meanwhile, and another slot has gone on.
            job = self._hand.start()
        self._bell.nudge()

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
            return
        if error is None:
            self._ack(job)
            return
        if isinstance(error, _LeaseEnded):
            self._tally.add(lost=1)
            _log.warning("the transaction of message %d was rolled back: its lease had ended", delivery.seq)
            self._end(job)
        elif isinstance(error, Reject):
            reason = clean_reason(error.reason)
            self._tally.add(rejected=self._insist(job, lambda: self._consumer.terminate(delivery, reason=reason)))
            self._end(job)
        elif isinstance(error, Retry):
            self._fail(job, clean_reason(error.reason), error.delay)
        elif isinstance(error, GivenUp):
            self._fail(job, self._too_long, None)
        else:
            _log.warning("message %d failed, attempt %d", delivery.seq, delivery.attempt, exc_info=error)
            self._fail(job, reason_of(error), None)
        self._bell.ring()

    def _ack(self, job: Job) -> None:
        if self._transactions is None:
            if self._hand.acked(job):
                self._bell.ring()
        else:
            self._tally.add(acked=1)
            self._bell.may_be_more = True
            self._hand.ended(job)
            self._bell.ring()

    def _fail(self, job: Job, reason: str, delay: float | timedelta | None) -> None:
        delivery = job.delivery
        if delay is None and self._backoff is not None:
            delay = delay_after(self._backoff, delivery.attempt, self._chance)
        nack = partial(self._consumer.nack, delivery, delay=delay, reason=reason)
        self._tally.add(failed=self._insist(job, nack))
        self._end(job, is_failed=True)

    def _end(self, job: Job, *, is_failed: bool = False) -> None:
        """Leave a message that was not acked, and find out whether those behind it are still ours."""
        behind = self._hand.behind(job)
        if behind:
            held_count = self._insist(job, lambda: self._ask(behind))
            if held_count and is_failed and self._gives_back_behind:
                reason = "an earlier message of its partition failed"
                deliveries = [other.delivery for other in behind]
                self._insist(job, lambda: self._consumer.nack(deliveries, reason=reason, untried=True))
                held_count = 0
            if not held_count:
                self._hand.drop(behind)
            elif held_count < len(behind):
                self._hand.drop([other for other in behind if not self._insist(job, partial(self._ask, [other]))])
        self._bell.may_be_more = True
        self._hand.ended(job)

    def _ask(self, jobs: list[Job]) -> int:
        """How many of them are still leased."""
        return self._consumer.extend([job.delivery for job in jobs], ack_wait=_ASK)

    def _insist(self, job: Job, call: Callable[[], Any]) -> int:
        """Call until Postgres answers, or nobody wants to know any more."""
        pause = FIRST_PAUSE
        while not job.is_lost and not self._is_over:
            try:
                return int(call())
            except Unavailable:
                sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        return 0


def _cut(job: Job) -> None:
    if (connection := job.connection) is not None:
        cut(connection)

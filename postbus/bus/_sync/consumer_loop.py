# Generated from postbus/bus/_async/consumer_loop.py by `make generate`; edit that file.

"""What a loop over a consumer's batches holds: the batch in hand, and the connection that flushes the ack before it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from postbus.model.delivery import Batch
from postbus.model.errors import Unavailable

if TYPE_CHECKING:
    from postbus.bus._sync.consumer import Consumer
    from postbus.db._sync.connection import LeanConnection

_WAIT_SECONDS: Final = 60.0
# A flush takes less. Whoever handled a batch for longer has nothing to gain from a connection that may have died meanwhile.
_FLUSH_SECONDS: Final = 0.1


class ConsumerLoop:
    """One loop.

    Args:
        consumer: Whose it is.
        max_messages: How many messages a batch has at most.
        ack_wait: How long they are leased; None takes the consumer's setting.
    """

    def __init__(self, consumer: Consumer, max_messages: int, ack_wait: float | timedelta | None) -> None:
        self._consumer = consumer
        self._max_messages = max_messages
        self._ack_wait = ack_wait
        self._batch: Batch | None = None
        self._flushing: LeanConnection | None = None
        self._given_at = 0.0

    def take(self, wait: timedelta | None) -> Batch:
        """Ack the batch in hand, and receive the next one; empty when there was none before the wait was over."""
        done, self._batch = self._batch, None
        if self._flushing is not None and time.monotonic() - self._given_at > _FLUSH_SECONDS:
            self._settle()
        batch, self._flushing = self._consumer._next_batch(self._max_messages, self._ack_wait, done, self._flushing)
        if not batch:
            self._settle()
            batch = replace(self._wait(wait), acked_count=batch.acked_count)
        self._batch = batch or None
        self._given_at = time.monotonic()
        return batch

    def _wait(self, wait: timedelta | None) -> Batch:
        end = None if wait is None else time.monotonic() + wait.total_seconds()
        batch = Batch(())
        while not batch and (end is None or time.monotonic() < end):
            left = _WAIT_SECONDS if end is None else min(_WAIT_SECONDS, end - time.monotonic())
            batch = self._consumer.receive(self._max_messages, wait=left, ack_wait=self._ack_wait)
        return batch

    def leave(self) -> None:
        """Give back what is not done. What cannot be given back ends with its lease."""
        with suppress(Unavailable):
            if self._batch:
                self._consumer.nack(self._batch, reason="the loop was left")
            self._settle()

    def _settle(self) -> None:
        connection, self._flushing = self._flushing, None
        if connection is not None:
            self._consumer._bus._database.settle(connection)

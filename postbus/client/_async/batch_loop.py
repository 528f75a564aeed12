"""A loop over a consumer's batches: acks one with the call that receives the next."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Protocol

from postbus.model.delivery import Batch, Deliveries
from postbus.model.duration import Duration
from postbus.model.errors import Unavailable
from postbus.transport._async.base import AsyncBatchSource

_WAIT_SECONDS: Final = 60.0


class AsyncReceiver(Protocol):
    """The part of a consumer that a loop uses."""

    async def receive(
        self, max_messages: int = 1, *, wait: Duration = 0, ack_wait: Duration | None = None
    ) -> Batch: ...

    async def nack(self, deliveries: Deliveries, *, reason: str | None = None) -> Any: ...


class AsyncBatchLoop:
    """One loop.

    Args:
        consumer: The consumer.
        source: Receives its batches.
        max_messages: The largest number of messages in a batch.
        ack_wait: How long messages are leased; None takes the consumer's setting.
    """

    def __init__(
        self, consumer: AsyncReceiver, source: AsyncBatchSource, max_messages: int, ack_wait: Duration | None
    ) -> None:
        self._consumer = consumer
        self._source = source
        self._max_messages = max_messages
        self._ack_wait = ack_wait
        self._batch: Batch | None = None

    async def take(self, wait: float | None) -> Batch:
        """Ack the last batch and receive the next one, which is empty if none arrived in time."""
        done, self._batch = self._batch, None
        batch = await self._source.next(self._max_messages, self._ack_wait, done)
        if not batch:
            await self._source.flush()
            batch = replace(await self._wait(wait), acked_count=batch.acked_count)
        self._batch = batch or None
        return batch

    async def _wait(self, wait: float | None) -> Batch:
        end = None if wait is None else time.monotonic() + wait
        batch = Batch(())
        while not batch and (end is None or time.monotonic() < end):
            left = _WAIT_SECONDS if end is None else min(_WAIT_SECONDS, end - time.monotonic())
            batch = await self._consumer.receive(self._max_messages, wait=left, ack_wait=self._ack_wait)
        return batch

    async def leave(self) -> None:
        """Give back the last batch. If that fails, its messages are redelivered when its lease expires."""
        with suppress(Unavailable):
            if self._batch:
                await self._consumer.nack(self._batch, reason="the loop was left")
            await self._source.flush()

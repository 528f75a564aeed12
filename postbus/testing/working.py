"""Run handlers until a consumer has nothing left to do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import postbus


def drain(
    consumer: postbus.Consumer, handler: Callable[..., Any], *, raises: bool = True, transaction: bool = False
) -> postbus.WorkSummary:
    """Handle all messages of a consumer that can be received, as its worker would.

    Args:
        consumer: The consumer or queue.
        handler: What your worker calls.
        raises: Raise the first exception of the handler, so that the test fails with it. Otherwise the message fails as in
            production: it waits for its retry, or becomes a dead letter.
        transaction: Give the handler a connection, as `consumer.run(transaction=True)` does.

    Returns:
        Counts of what was done.
    """
    noted = _Noting(handler)
    summary = consumer.run(noted.call, stop_when_empty=True, transaction=transaction, install_signal_handlers=False)
    noted.end(raises=raises)
    return summary


async def drain_async(
    consumer: postbus.AsyncConsumer, handler: Callable[..., Any], *, raises: bool = True, transaction: bool = False
) -> postbus.WorkSummary:
    """As `drain`, for an async bus. The handler may be async."""
    noted = _Noting(handler)
    summary = await consumer.run(
        noted.call_async, stop_when_empty=True, transaction=transaction, install_signal_handlers=False
    )
    noted.end(raises=raises)
    return summary


def make_due(bus: postbus.Bus, stream: str) -> int:
    """Publish all scheduled messages of a stream now, as if their time had come.

    Returns:
        How many there were.
    """
    scheduled = [each.id for each in bus.list_scheduled(stream, max_messages=10_000)]
    count = bus.reschedule(stream, scheduled, datetime.now(UTC))
    bus.sweep(stream)
    return count


class _Noting:
    """Calls a handler, and keeps its first exception."""

    def __init__(self, handler: Callable[..., Any]) -> None:
        self._handler = handler
        self._error: Exception | None = None

    def call(self, *arguments: Any) -> Any:
        try:
            return self._handler(*arguments)
        except Exception as error:
            self._note(error)
            raise

    async def call_async(self, *arguments: Any) -> Any:
        try:
            result = self._handler(*arguments)
            return await result if hasattr(result, "__await__") else result
        except Exception as error:
            self._note(error)
            raise

    def end(self, *, raises: bool) -> None:
        if raises and self._error is not None:
            raise self._error

    def _note(self, error: Exception) -> None:
        # Retry, Reject and Defer are what a handler says of a message, and no fault of the test.
        if self._error is None and not isinstance(error, (postbus.Retry, postbus.Reject, postbus.Defer)):
            self._error = error

"""Messages of whole transactions on their way to the stream, in bounded memory, published while the next ones are decoded."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime
from types import TracebackType
from typing import Final, Self
from uuid import UUID, uuid4

from postbus.sources.catalog import age
from postbus.sources.changes import Messages
from postbus.sources.target import PageDone, Publisher

# What one call of publish_many takes.
_MOST_MESSAGES: Final = 10_000
# A transaction with more than this is staged beside the stream, so that it holds neither our memory nor the stream's readers.
LARGE_MESSAGES: Final = 10_000
LARGE_BYTES: Final = 16 * 1024 * 1024
_CHUNK_MESSAGES: Final = 5_000
_CHUNK_BYTES: Final = 4 * 1024 * 1024
# Enough to publish, although more is coming.
_ENOUGH_MESSAGES: Final = 2_000
_ENOUGH_BYTES: Final = 1024 * 1024
_TURN_SECONDS: Final = 0.2


class Outbox:
    """Collects transactions and publishes them in order, with the position, by one thread.

    Args:
        publisher: Publishes. It is used by that thread alone.
        position: All transactions that end up to here are published.
        meanwhile: Called again and again while it waits.
    """

    def __init__(self, publisher: Publisher, position: int, meanwhile: Callable[[], None]) -> None:
        self.stored = position
        self.stored_at = time.monotonic()
        self.committed_at: datetime | None = None
        self.change_count = 0
        self.transaction_count = 0
        # Stored positions, until they are old enough to be confirmed.
        self.unconfirmed: deque[tuple[float, int]] = deque([(self.stored_at, position)])
        self._publisher = publisher
        self._meanwhile = meanwhile
        self._submitted = position
        self._closed = Messages()
        self._closed_to = position
        self._closed_at: datetime | None = None
        self._closed_count = 0
        self._oldest_at: datetime | None = None
        self._attempt: UUID | None = None
        self._chunk_count = 0
        self._staged_count = 0
        self._thread = ThreadPoolExecutor(1, "postbus source publisher")
        self._future: Future[None] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether everything that was closed is published."""
        return self._future is None and self._closed_to == self._submitted == self.stored

    @property
    def has_large(self) -> bool:
        """Whether a part of the open transaction is staged."""
        return self._attempt is not None

    @property
    def has_closed(self) -> bool:
        return self._closed_to > self._submitted

    @property
    def is_publishing(self) -> bool:
        return self._future is not None

    @property
    def oldest_at(self) -> datetime | None:
        """When the oldest transaction was committed that is not published."""
        return self._oldest_at

    def grow(self, messages: Messages) -> None:
        """Take over what an open transaction has so far, if it has become large."""
        if self._attempt is None:
            if len(messages) < LARGE_MESSAGES and messages.size < LARGE_BYTES:
                return
            self._attempt = uuid4()
            self.flush()
        if len(messages) >= _CHUNK_MESSAGES or messages.size >= _CHUNK_BYTES:
            self._stage(messages)

    def close(self, messages: Messages, end_lsn: int, committed_at: datetime) -> None:
        """Take over a transaction that is complete."""
        if self._attempt is not None:
            self._close_large(messages, end_lsn, committed_at)
            return
        if len(self._closed) + len(messages) > _MOST_MESSAGES or self._closed.size + messages.size > LARGE_BYTES:
            # What is decoded waits here, and not in our memory.
            self.flush()
        self._closed.extend(messages)
        self._closed_to = end_lsn
        self._closed_at = committed_at
        self._closed_count += 1
        if self._oldest_at is None:
            self._oldest_at = committed_at

    def close_page(self, messages: Messages, end_lsn: int, committed_at: datetime, page: PageDone) -> None:
        """Publish a page of a backfill, and with it the transaction that marks it."""
        self.flush()
        after, self._submitted, self._closed_to = self._submitted, end_lsn, end_lsn
        self._submit(
            lambda: self._publisher.publish(after, end_lsn, committed_at, messages.keys, messages.data, page=page),
            (end_lsn, committed_at, len(messages), 0),
        )

    def poll(self, *, is_more_coming: bool) -> None:
        """Go on, without waiting.

        Args:
            is_more_coming: More can be received at once, so it is worth while to collect more before it is published.
        """
        if self._future is not None:
            if not self._future.done():
                return
            self._finish()
        if self.has_closed and (
            not is_more_coming or len(self._closed) >= _ENOUGH_MESSAGES or self._closed.size >= _ENOUGH_BYTES
        ):
            self._publish()

    def flush(self) -> None:
        """Publish all that is closed, and wait for it."""
        self.settle()
        if self.has_closed:
            self._publish()
            self.settle()

    def settle(self) -> None:
        """Wait for what is being published."""
        while self._future is not None:
            if wait([self._future], _TURN_SECONDS).done:
                self._finish()
            else:
                self._meanwhile()

    def move(self, lsn: int) -> None:
        """Store a position before which there is nothing to publish."""
        self.flush()
        after, self._submitted, self._closed_to = self._submitted, lsn, lsn
        self._submit(lambda: self._publisher.publish(after, lsn, None, (), ()), (lsn, None, 0, 0))

    def confirmable(self, delay: float) -> int:
        """The newest position that was stored so long ago."""
        limit = time.monotonic() - delay
        while len(self.unconfirmed) > 1 and self.unconfirmed[1][0] <= limit:
            self.unconfirmed.popleft()
        return self.unconfirmed[0][1]

    def close_thread(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_thread()

    def _publish(self) -> None:
        messages, to, at, count = self._closed, self._closed_to, self._closed_at, self._closed_count
        after, self._submitted = self._submitted, to
        self._closed, self._closed_count = Messages(), 0
        self._submit(
            lambda: self._publisher.publish(after, to, at, messages.keys, messages.data), (to, at, len(messages), count)
        )

    def _stage(self, messages: Messages) -> None:
        """Store what there is of a large transaction, and forget it here."""
        assert self._attempt is not None  # noqa: S101
        self.settle()
        attempt, chunk = self._attempt, self._chunk_count
        keys, data = messages.keys, messages.data
        messages.keys, messages.data, messages.size = [], [], 0
        self._chunk_count += 1
        self._staged_count += len(keys)
        self._submit(lambda: self._publisher.stage(attempt, chunk, keys, data), None)

    def _close_large(self, messages: Messages, end_lsn: int, committed_at: datetime) -> None:
        attempt = self._attempt
        assert attempt is not None  # noqa: S101
        if messages.keys:
            self._stage(messages)
        self.settle()
        count = self._staged_count
        after, self._submitted, self._closed_to = self._submitted, end_lsn, end_lsn
        self._attempt, self._chunk_count, self._staged_count = None, 0, 0
        self._submit(
            lambda: self._publisher.publish_staged(after, end_lsn, committed_at, attempt, count),
            (end_lsn, committed_at, count, 1),
        )
        self.settle()

    def _submit(self, task: Callable[[], None], result: tuple[int, datetime | None, int, int] | None) -> None:
        self._result = result
        self._future = self._thread.submit(task)

    def _finish(self) -> None:
        assert self._future is not None  # noqa: S101
        future, self._future = self._future, None
        # Raises what the task has raised.
        future.result()
        if self._result is None:
            return
        self.stored, committed_at, changes, transactions = self._result
        self.stored_at = time.monotonic()
        self.unconfirmed.append((self.stored_at, self.stored))
        self.change_count += changes
        self.transaction_count += transactions
        if committed_at is not None:
            self.committed_at = committed_at
        self._oldest_at = self._closed_at if self.has_closed else None

    def lag_seconds(self) -> float:
        """For how long the oldest transaction waits that is not published."""
        return 0.0 if self._oldest_at is None else age(self._oldest_at)

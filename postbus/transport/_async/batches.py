"""The batches of a loop over Postgres: each ack is written to disk while the next batch is handled."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from postbus.db._async.connection import AsyncPreparedConnection
from postbus.db._async.database import AsyncDatabase
from postbus.model.delivery import Batch
from postbus.model.duration import Duration
from postbus.model.errors import ConnectionLost, Unavailable

# A flush takes less time than this. If a batch took longer, the connection may have died, and is not worth keeping.
_FLUSH_SECONDS: Final = 0.1


class AsyncPostgresBatches:
    """Receives the batches of one loop.

    Args:
        database: The pool.
        receive: Receives a batch, and acks another one without waiting for the disk.
    """

    def __init__(self, database: AsyncDatabase, receive: Callable[[int, Duration | None, Batch | None], Any]) -> None:
        self._database = database
        self._receive = receive
        self._flushing: AsyncPreparedConnection | None = None
        self._returned_at = 0.0

    async def next(self, max_messages: int, ack_wait: Duration | None, done: Batch | None) -> Batch:
        """Ack a batch and receive the next one, without waiting for the disk.

        Raises:
            ConnectionLost: The ack counts, and may not be on disk.
        """
        if self._flushing is not None and time.monotonic() - self._returned_at > _FLUSH_SECONDS:
            await self.flush()
        batch: Batch = await self._receive(max_messages, ack_wait, done)
        if done is None:
            self._flushing = None  # A receive without an ack does not have to be on disk.
        else:
            since = self._database.server_started_at
            try:
                self._flushing = await self._database.flush(self._flushing, since)
            except Unavailable as error:
                # The ack did take effect, so the original error would be misleading.
                raise ConnectionLost(f"acks may not be on disk: {error.message}", error.hint) from error
        self._returned_at = time.monotonic()
        return batch

    async def flush(self) -> None:
        """Wait until all acks are on disk."""
        connection, self._flushing = self._flushing, None
        if connection is not None:
            await self._database.await_flush(connection)

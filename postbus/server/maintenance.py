"""The server's background work: redelivers expired and due messages, publishes scheduled ones, and maintains the logs."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from postbus.db.embedded.locks import FileLock
from postbus.maintenance import pace
from postbus.maintenance._async.upkeep import AsyncUpkeep
from postbus.model.errors import Error
from postbus.server import logs
from postbus.server.connection import Connection


class Maintenance:
    """Runs the library's upkeep in one of the processes that share a lock file."""

    def __init__(self, connection: Connection, lock_file: Path | None) -> None:
        self._connection = connection
        self._lock = None if lock_file is None else FileLock(lock_file)
        self._has_lock = False
        self._task: asyncio.Task[None] | None = None
        self._problem: str | None = None
        self._upkeep: AsyncUpkeep | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._lock is not None:
            self._lock.release()

    async def _run(self) -> None:
        while True:
            if self._is_ours():
                await self._turn()
            await asyncio.sleep(pace.SWEEP_SECONDS)

    def _is_ours(self) -> bool:
        if self._lock is not None and not self._has_lock:
            self._has_lock = self._lock.try_acquire(shared=False)
        return self._lock is None or self._has_lock

    async def _turn(self) -> None:
        try:
            bus = self._connection.bus
            if self._upkeep is None or self._upkeep.bus is not bus:
                self._upkeep = bus.upkeep()
            await self._upkeep.turn()
        except Error as error:
            # Logged once per outage, not every second.
            if error.message != self._problem:
                logs.note("maintenance is delayed", reason=error.message)
            self._problem = error.message
        else:
            self._problem = None

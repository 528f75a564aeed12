"""Does the recurring work of a bus: redelivers, publishes scheduled messages, and maintains the logs."""

from __future__ import annotations

import logging
import time
from typing import Protocol

from postbus._compat import AsyncSignal
from postbus.maintenance import pace
from postbus.model.errors import Error

_log = logging.getLogger("postbus.upkeep")


class AsyncFilled(Protocol):
    """Recurring schedules, whose times are filled in ahead."""

    async def fill(self) -> int: ...


class AsyncRun(Protocol):
    """Tasks in the background."""

    async def run(self) -> int: ...


class AsyncMaintained(Protocol):
    """What the service needs of a bus."""

    async def sweep(self) -> int: ...

    async def maintain(self) -> int: ...

    @property
    def schedules(self) -> AsyncFilled: ...

    @property
    def tasks(self) -> AsyncRun: ...


class AsyncUpkeep:
    """Sweeps every second and maintains every five; get one from `bus.upkeep`.

    Any number may run, in any number of processes: only one at a time works on a stream or consumer, and a killed one leaves
    nothing half-done. The HTTP server runs one.
    """

    def __init__(self, bus: AsyncMaintained) -> None:
        self.bus = bus
        self._signal = AsyncSignal()
        self._is_stopped = False
        self._next_maintenance = 0.0
        self._problem: str | None = None

    async def run(self) -> None:
        """Work until `stop`. An error is logged once, and the work is tried again."""
        while not self._is_stopped:
            try:
                await self.turn()
                self._problem = None
            except Error as error:
                if error.message != self._problem:
                    _log.warning("upkeep is put off: %s", error.message)
                self._problem = error.message
            if not self._is_stopped:
                await self._signal.wait(pace.SWEEP_SECONDS)

    def stop(self) -> None:
        """End `run` after the current turn."""
        self._is_stopped = True
        self._signal.set()

    async def turn(self) -> None:
        """Do what is due now."""
        await self.bus.sweep()
        # A large task does not keep the rest waiting.
        until = time.monotonic() + pace.TASK_SECONDS
        while await self.bus.tasks.run() and time.monotonic() < until:
            pass
        if time.monotonic() >= self._next_maintenance:
            self._next_maintenance = time.monotonic() + pace.MAINTENANCE_SECONDS
            await self.bus.maintain()
            await self.bus.schedules.fill()

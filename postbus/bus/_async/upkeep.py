"""What has to be done again and again: redelivering, publishing what was scheduled, and the upkeep of the logs."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from postbus._compat import AsyncSignal
from postbus.model.errors import Error

if TYPE_CHECKING:
    from postbus.bus._async.bus import AsyncBus

_log = logging.getLogger("postbus.upkeep")
SWEEP_SECONDS: Final = 1.0
MAINTENANCE_SECONDS: Final = 5.0


class AsyncUpkeep:
    """Sweeps every second and maintains every five; get one from `bus.upkeep`.

    Any number may run, in any number of processes: one at a time works on a stream or consumer, and one that is killed leaves
    nothing half-done. The HTTP server runs one by itself.
    """

    def __init__(self, bus: AsyncBus) -> None:
        self.bus = bus
        self._signal = AsyncSignal()
        self._is_stopped = False
        self._next_maintenance = 0.0
        self._problem: str | None = None

    async def run(self) -> None:
        """Work until `stop`. What Postgres refuses, or an outage, is logged once and tried again."""
        while not self._is_stopped:
            try:
                await self.turn()
                self._problem = None
            except Error as error:
                if error.message != self._problem:
                    _log.warning("upkeep is put off: %s", error.message)
                self._problem = error.message
            if not self._is_stopped:
                await self._signal.wait(SWEEP_SECONDS)

    def stop(self) -> None:
        """Let `run` end after what it is at."""
        self._is_stopped = True
        self._signal.set()

    async def turn(self) -> None:
        """Do what is due now, once."""
        await self.bus.sweep()
        if time.monotonic() >= self._next_maintenance:
            self._next_maintenance = time.monotonic() + MAINTENANCE_SECONDS
            await self.bus.maintain()

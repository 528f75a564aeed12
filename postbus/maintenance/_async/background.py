"""Does the upkeep in the background of a bus, in one process at a time of those that are connected."""

from __future__ import annotations

import logging
import random
import time
import weakref
from datetime import timedelta
from uuid import uuid4

from postbus._compat import AsyncBackground, AsyncSignal
from postbus.maintenance import pace
from postbus.model.errors import Error, Unavailable
from postbus.operations import streams, upkeep
from postbus.transport._async.base import AsyncTransport

_log = logging.getLogger("postbus.upkeep")


class AsyncBackgroundUpkeep:
    """Sweeps and maintains while its bus is open, unless another process does.

    It uses the connections of the bus, for a moment each second, or every few seconds while another process does the work. A bus
    that is dropped without being closed ends it. A role that may not do it leaves it alone.
    """

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = weakref.ref(transport)
        self._holder = str(uuid4())
        self._signal = AsyncSignal()
        self._is_stopped = False
        self._is_allowed = False
        self._next_maintenance = 0.0
        self._problem: str | None = None
        self._background = AsyncBackground(self._run, "postbus upkeep")

    async def close(self) -> None:
        """End it. A step that takes long is left to end by itself."""
        self._is_stopped = True
        self._signal.set()
        await self._background.join(pace.STOP_SECONDS)

    async def _run(self) -> None:
        pause: float | None = pace.FIRST_SECONDS
        while pause is not None and not self._is_stopped:
            await self._signal.wait(pause)
            if not self._is_stopped:
                pause = await self._turn()

    async def _turn(self) -> float | None:
        """Do what is due. Returns the seconds until the next turn, or None if there will be none."""
        transport = self._transport()
        if transport is None:
            return None
        try:
            pause = await self._work(transport)
        except Error as error:
            self._note(error)
            self._next_maintenance = 0.0
            return pace.RETRY_SECONDS * random.uniform(1, 3)  # noqa: S311
        self._problem = None
        return pause

    async def _work(self, transport: AsyncTransport) -> float | None:
        if not self._is_allowed:
            self._is_allowed = await transport.run(upkeep.may())
            if not self._is_allowed:
                _log.debug("this role does no upkeep here")
                return None
        is_due = time.monotonic() >= self._next_maintenance
        if is_due and not await transport.run(upkeep.take(self._holder, timedelta(seconds=pace.LEASE_SECONDS))):
            # Not all at the same time.
            return pace.STANDBY_SECONDS * random.uniform(1, 1.5)  # noqa: S311
        await transport.run(streams.sweep(None))
        if is_due:
            self._next_maintenance = time.monotonic() + pace.MAINTENANCE_SECONDS
            await transport.run(streams.maintain(None))
            await transport.fill_schedules()
        return pace.SWEEP_SECONDS

    def _note(self, error: Error) -> None:
        """Log an error once. An outage is no news: the program's own calls report it."""
        if error.message != self._problem and not self._is_stopped:
            _log.log(
                logging.INFO if isinstance(error, Unavailable) else logging.WARNING,
                "upkeep is put off: %s",
                error.message,
            )
        self._problem = error.message

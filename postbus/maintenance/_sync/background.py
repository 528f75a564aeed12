# Generated from postbus/maintenance/_async/background.py by `make generate`; edit that file.

"""Does the upkeep in the background of a bus, in one process at a time of those that are connected."""

from __future__ import annotations

import logging
import random
import time
import weakref
from datetime import timedelta
from uuid import uuid4

from postbus._compat import Background, Signal
from postbus.maintenance import pace
from postbus.model.errors import Error, Unavailable
from postbus.operations import streams, upkeep
from postbus.transport._sync.base import Transport

_log = logging.getLogger("postbus.upkeep")


class BackgroundUpkeep:
    """Sweeps and maintains while its bus is open, unless another process does.

    It uses the connections of the bus, for a moment each second, or every few seconds while another process does the work. A bus
    that is dropped without being closed ends it. A role that may not do it leaves it alone.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = weakref.ref(transport)
        self._holder = str(uuid4())
        self._signal = Signal()
        self._is_stopped = False
        self._is_allowed = False
        self._next_maintenance = 0.0
        self._problem: str | None = None
        self._background = Background(self._run, "postbus upkeep")

    def close(self) -> None:
        """End it. A step that takes long is left to end by itself."""
        self._is_stopped = True
        self._signal.set()
        self._background.join(pace.STOP_SECONDS)

    def _run(self) -> None:
        pause: float | None = pace.FIRST_SECONDS
        while pause is not None and not self._is_stopped:
            self._signal.wait(pause)
            if not self._is_stopped:
                pause = self._turn()

    def _turn(self) -> float | None:
        """Do what is due. Returns the seconds until the next turn, or None if there will be none."""
        transport = self._transport()
        if transport is None:
            return None
        try:
            pause = self._work(transport)
        except Error as error:
            self._note(error)
            self._next_maintenance = 0.0
            return pace.RETRY_SECONDS * random.uniform(1, 3)  # noqa: S311
        self._problem = None
        return pause

    def _work(self, transport: Transport) -> float | None:
        if not self._is_allowed:
            self._is_allowed = transport.run(upkeep.may())
            if not self._is_allowed:
                _log.debug("this role does no upkeep here")
                return None
        is_due = time.monotonic() >= self._next_maintenance
        if is_due and not transport.run(upkeep.take(self._holder, timedelta(seconds=pace.LEASE_SECONDS))):
            # Not all at the same time.
            return pace.STANDBY_SECONDS * random.uniform(1, 1.5)  # noqa: S311
        transport.run(streams.sweep(None))
        if is_due:
            self._next_maintenance = time.monotonic() + pace.MAINTENANCE_SECONDS
            transport.run(streams.maintain(None))
            transport.fill_schedules()
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

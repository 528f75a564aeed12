# Generated from postbus/bus/_async/upkeep.py by `make generate`; edit that file.

"""What has to be done again and again: redelivering, publishing what was scheduled, and the upkeep of the logs."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from postbus._compat import Signal
from postbus.model.errors import Error

if TYPE_CHECKING:
    from postbus.bus._sync.bus import Bus

_log = logging.getLogger("postbus.upkeep")
SWEEP_SECONDS: Final = 1.0
MAINTENANCE_SECONDS: Final = 5.0


class Upkeep:
    """Sweeps every second and maintains every five; get one from `bus.upkeep`.

    Any number may run, in any number of processes: one at a time works on a stream or consumer, and one that is killed leaves
    nothing half-done. The HTTP server runs one by itself.
    """

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self._signal = Signal()
        self._is_stopped = False
        self._next_maintenance = 0.0
        self._problem: str | None = None

    def run(self) -> None:
        """Work until `stop`. What Postgres refuses, or an outage, is logged once and tried again."""
        while not self._is_stopped:
            try:
                self.turn()
                self._problem = None
            except Error as error:
                if error.message != self._problem:
                    _log.warning("upkeep is put off: %s", error.message)
                self._problem = error.message
            if not self._is_stopped:
                self._signal.wait(SWEEP_SECONDS)

    def stop(self) -> None:
        """Let `run` end after what it is at."""
        self._is_stopped = True
        self._signal.set()

    def turn(self) -> None:
        """Do what is due now, once."""
        self.bus.sweep()
        if time.monotonic() >= self._next_maintenance:
            self._next_maintenance = time.monotonic() + MAINTENANCE_SECONDS
            self.bus.maintain()

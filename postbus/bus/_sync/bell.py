# Generated from postbus/bus/_async/bell.py by `make generate`; edit that file.

"""How the slots of a worker call its clerk, who may be waiting for them or for messages."""

from __future__ import annotations

from postbus.bus._sync.watch import Watch
from postbus.bus.signals import Signal


class Bell:
    """Between the slots and the clerk of one worker.

    Attributes:
        may_be_more: Whether there may be something to receive that was not there at the last look. Whoever settles a message
            says so before he leaves his slot, so that a clerk who finds all slots empty knows it.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._signal = Signal()
        self.may_be_more = True

    def ring(self) -> None:
        """There is something to do, for a clerk who waits for messages too."""
        self._signal.set()
        self._watch.interrupt()

    def nudge(self) -> None:
        """A slot is empty: of interest to a clerk who waits for that."""
        self._signal.set()

    def wait(self, seconds: float) -> None:
        """Wait until somebody calls, or time is up."""
        self._signal.wait(seconds)

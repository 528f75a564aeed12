# Generated from postbus/worker/_async/wakeup.py by `make generate`; edit that file.

"""Wakes the receive loop of a worker, which waits for messages or for a free slot."""

from __future__ import annotations

from postbus._compat import Signal
from postbus.transport._sync.waiting import WaitStrategy


class ReceiverWakeup:
    """Wakes the receive loop of one worker.

    Attributes:
        may_have_more: There may be messages that the last receive did not find. A slot that ends a delivery sets it before it
            becomes free, so the receive loop never sees idle slots without knowing that a delivery ended.
    """

    def __init__(self, waiting: WaitStrategy) -> None:
        self._waiting = waiting
        self._signal = Signal()
        self.may_have_more = True

    def notify(self) -> None:
        """Wake the receive loop, also while it waits for messages."""
        self._signal.set()
        self._waiting.interrupt()

    def notify_slot_free(self) -> None:
        """Wake the receive loop if it waits for a slot."""
        self._signal.set()

    def wait(self, seconds: float) -> None:
        """Wait for a notification, or until time is up."""
        self._signal.wait(seconds)

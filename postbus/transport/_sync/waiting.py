# Generated from postbus/transport/_async/waiting.py by `make generate`; edit that file.

"""How a worker with free capacity waits for messages: one strategy for each transport."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Protocol

from postbus._compat import Signal

if TYPE_CHECKING:
    from postbus.transport._sync.wakeups import Waiter, Wakeups

# Over HTTP, an idle worker waits in a request, which cannot be interrupted, so a stop may take this long.
_REQUEST_SECONDS: Final = 1.0
# A busy worker with free capacity polls again after a twentieth of the time since its last message, within these bounds.
_SHORTEST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.5
_PAUSE_SHARE: Final = 1 / 20


class WaitStrategy(Protocol):
    """Tells a worker when to receive."""

    def receive_wait(self, ack_wait: float) -> float:
        """How many seconds the receive call of an idle worker may wait for messages."""
        ...

    def note_received(self) -> None:
        """A receive returned messages."""
        ...

    def wait(self, seconds: float, is_idle: Callable[[], bool]) -> bool:
        """Wait until there may be messages; False after the time limit or an interrupt.

        It does not wait if the worker is no longer idle by the time that it could be interrupted.
        """
        ...

    def interrupt(self) -> None:
        """End the wait. Safe to use from any thread."""
        ...


class PostgresWaiting:
    """Waits with the other receivers of the transport, which share one query."""

    def __init__(self, wakeups: Wakeups, stream: str, consumer: str) -> None:
        self._wakeups = wakeups
        self._consumer = (stream, consumer)
        self._ids: tuple[int, int] | None = None
        self._seen = 0
        self._waiter: Waiter | None = None

    def receive_wait(self, ack_wait: float) -> float:
        return 0.0

    def note_received(self) -> None:
        pass

    def wait(self, seconds: float, is_idle: Callable[[], bool]) -> bool:
        if self._ids is None:
            self._ids = self._wakeups.find_consumer(*self._consumer)
        waiter = self._wakeups.waiter(*self._consumer, timedelta(seconds=seconds))
        waiter.consumer_id, waiter.stream_id = self._ids
        waiter.seen = self._seen
        self._waiter = waiter
        self._wakeups.join(waiter)
        try:
            return is_idle() and waiter.wait()
        finally:
            self._waiter = None
            self._wakeups.leave(waiter)
            self._seen = waiter.seen

    def interrupt(self) -> None:
        if (waiter := self._waiter) is not None:
            waiter.interrupt()


class HttpWaiting:
    """Waits in the server while the worker is idle, and pauses between requests otherwise."""

    def __init__(self) -> None:
        self._signal = Signal()
        self._received_at = time.monotonic()
        self._has_waited = False

    def receive_wait(self, ack_wait: float) -> float:
        self._has_waited = True
        # The lease may have begun as early as the request.
        return min(_REQUEST_SECONDS, ack_wait / 4)

    def note_received(self) -> None:
        self._received_at = time.monotonic()
        self._has_waited = False

    def wait(self, seconds: float, is_idle: Callable[[], bool]) -> bool:
        if not is_idle():
            return False
        if not self._has_waited:
            quiet = time.monotonic() - self._received_at
            self._signal.wait(min(seconds, max(_SHORTEST_PAUSE, min(quiet * _PAUSE_SHARE, _LONGEST_PAUSE))))
        self._has_waited = False
        return True

    def interrupt(self) -> None:
        self._signal.set()

"""How a worker that has room waits for messages."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol

from postbus.bus._async.wakeups import AsyncWaiter, AsyncWakeups
from postbus.bus.signals import AsyncSignal

# Over HTTP an idle worker waits in a request, which cannot be interrupted from here: so long may a stop take.
_HOLD_SECONDS: Final = 1.0
# One that is busy, and has room, asks again after a twentieth of the time since it last got something, within these bounds.
_SHORTEST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.5
_PAUSE_SHARE: Final = 1 / 20


class AsyncWatch(Protocol):
    """Tells a worker when to receive."""

    def hold(self, ack_wait: float) -> float:
        """How many seconds the receive of a worker that has nothing else to do may wait by itself."""
        ...

    def received(self) -> None:
        """There was something."""
        ...

    async def wait(self, seconds: float, is_idle: Callable[[], bool]) -> bool:
        """Wait until there may be something to receive; False when time is up, or it was interrupted.

        What was told before it could be interrupted makes it not idle, and it does not wait.
        """
        ...

    def interrupt(self) -> None:
        """Let the wait be over, from any thread."""
        ...


class AsyncPostgresWatch:
    """Joins those whom the bus wakes."""

    def __init__(self, wakeups: AsyncWakeups, stream: str, consumer: str) -> None:
        self._wakeups = wakeups
        self._consumer = (stream, consumer)
        self._ids: tuple[int, int] | None = None
        self._seen = 0
        self._waiter: AsyncWaiter | None = None

    def hold(self, ack_wait: float) -> float:
        return 0.0

    def received(self) -> None:
        pass

    async def wait(self, seconds: float, is_idle: Callable[[], bool]) -> bool:
        if self._ids is None:
            self._ids = await self._wakeups.find_consumer(*self._consumer)
        waiter = self._wakeups.waiter(*self._consumer, timedelta(seconds=seconds))
        waiter.consumer_id, waiter.stream_id = self._ids
        waiter.seen = self._seen
        self._waiter = waiter
        self._wakeups.join(waiter)
        try:
            return is_idle() and await waiter.wait()
        finally:
            self._waiter = None
            self._wakeups.leave(waiter)
            self._seen = waiter.seen

    def interrupt(self) -> None:
        if (waiter := self._waiter) is not None:
            waiter.interrupt()


class AsyncHttpWatch:
    """Lets the server wait when there is nothing else to do, and pauses otherwise."""

    def __init__(self) -> None:
        self._signal = AsyncSignal()
        self._received_at = time.monotonic()
        self._has_held = False

    def hold(self, ack_wait: float) -> float:
        self._has_held = True
        # The lease counts from before the request, for all the worker knows.
        return min(_HOLD_SECONDS, ack_wait / 4)

    def received(self) -> None:
        self._received_at = time.monotonic()
        self._has_held = False

    async def wait(self, seconds: float, is_idle: Callable[[], bool]) -> bool:
        if not is_idle():
            return False
        if not self._has_held:
            quiet = time.monotonic() - self._received_at
            await self._signal.wait(min(seconds, max(_SHORTEST_PAUSE, min(quiet * _PAUSE_SHARE, _LONGEST_PAUSE))))
        self._has_held = False
        return True

    def interrupt(self) -> None:
        self._signal.set()

"""Wakes receivers that wait for messages, with one small query at a time for all of them.

Postgres could notify, but a NOTIFY in each publish would make publishers queue. Instead one waiting receiver looks, for all
of them, whether numbers were drawn, a lease has expired or a retry is due: a hundred times a second while there is traffic, forty
times while there is none. When it leaves, another takes its turn. No thread or task runs while nobody waits.
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from postbus.bus import rows
from postbus.bus.signals import AsyncSignal, async_sleep
from postbus.db import statements
from postbus.db._async.database import AsyncDatabase
from postbus.db.arrays import BigintArray
from postbus.model.errors import Unavailable

_BUSY_INTERVAL: Final = 0.01
_IDLE_INTERVAL: Final = 0.025
# After the last wake-up, how long to keep looking often.
_BUSY_SECONDS: Final = 2.0
# A waiter that nobody wakes tries all the same, after this long at first and then less and less often: the message that it was
# woken for may have been behind somebody's mutex just then, and nothing would wake it for that message again.
_FIRST_TRY_SECONDS: Final = 0.05
_LAST_TRY_SECONDS: Final = 5.0


class AsyncWakeups:
    """The receivers of one bus that wait."""

    def __init__(self, database: AsyncDatabase) -> None:
        self._database = database
        self._waiters: list[AsyncWaiter] = []
        self._turn = threading.Lock()
        self._last_wake = 0.0

    def waiter(self, stream: str, consumer: str, timeout: timedelta) -> AsyncWaiter:
        return AsyncWaiter(self, stream, consumer, timeout.total_seconds())

    async def find_consumer(self, stream: str, consumer: str) -> int:
        found = await self._database.rows(statements.CONSUMER_INFO, (stream, consumer), repeatable=True)
        return rows.consumer_info(found[0]).id

    def join(self, waiter: AsyncWaiter) -> None:
        self._waiters.append(waiter)

    def leave(self, waiter: AsyncWaiter) -> None:
        self._waiters.remove(waiter)
        # If it was the one who looked, another has to.
        if self._waiters:
            self._waiters[0].signal.set()

    def take_turn(self) -> bool:
        return self._turn.acquire(blocking=False)

    def end_turn(self) -> None:
        self._turn.release()

    async def look(self, at_most: float) -> None:
        """Pause a moment, then wake those for whom there may be something."""
        is_busy = time.monotonic() - self._last_wake < _BUSY_SECONDS
        await async_sleep(min(_BUSY_INTERVAL if is_busy else _IDLE_INTERVAL, at_most))
        waiters = list(self._waiters)
        parameters = (
            BigintArray([waiter.consumer_id for waiter in waiters]),
            BigintArray([waiter.seen for waiter in waiters]),
        )
        try:
            found = await self._database.rows(statements.PULSE, parameters, repeatable=True)
        except Unavailable:
            return  # The next receive will say so, if it is still true then.
        for waiter, (wake, seen) in zip(waiters, found, strict=True):
            waiter.seen = seen
            if wake:
                self._last_wake = time.monotonic()
                waiter.woken = True
                waiter.signal.set()


class AsyncWaiter:
    """One receive that waits."""

    def __init__(self, wakeups: AsyncWakeups, stream: str, consumer: str, timeout: float) -> None:
        self._wakeups = wakeups
        self._stream = stream
        self._consumer = consumer
        self._end = time.monotonic() + timeout
        self.consumer_id = 0
        # Up to here there was nothing left to receive.
        self.seen = 0
        self.woken = False
        self.signal = AsyncSignal()
        self._try_after = _FIRST_TRY_SECONDS

    async def __aenter__(self) -> Self:
        self.consumer_id = await self._wakeups.find_consumer(self._stream, self._consumer)
        self._wakeups.join(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wakeups.leave(self)

    async def wait(self) -> bool:
        """Wait until there may be something to receive; False when time is up."""
        try_at = time.monotonic() + self._try_after
        self._try_after = min(2 * self._try_after, _LAST_TRY_SECONDS)
        while not self.woken:
            now = time.monotonic()
            if now >= self._end:
                return False
            if now >= try_at:
                return True
            remaining = min(self._end, try_at) - now
            if self._wakeups.take_turn():
                try:
                    await self._wakeups.look(remaining)
                finally:
                    self._wakeups.end_turn()
            else:
                await self.signal.wait(remaining)
        self.woken = False
        self._try_after = _FIRST_TRY_SECONDS
        return True

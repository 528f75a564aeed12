"""The slots of one sender: how many requests it may have open at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class Slots:
    """Slots that are taken in the order in which they are asked for."""

    def __init__(self) -> None:
        self.used = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def take(self, count: int, is_over: Callable[[], bool]) -> None:
        """Take one of so many slots. If it is over, nobody has to wait: who takes one then will not use it."""
        while self.used >= count and not is_over():
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        self.used += 1

    def give_back(self) -> None:
        self.used -= 1
        self._wake(1)

    def wake_all(self) -> None:
        """It may be over."""
        self._wake(len(self._waiters))

    def _wake(self, count: int) -> None:
        while count and self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                count -= 1

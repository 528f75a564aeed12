"""A value that many pages share: it is asked for again behind their backs when it is old."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from postbus.model.errors import Error

Value = TypeVar("Value")
# A value is asked for again when it is so many times as old as asking took: with a thousand streams it takes a tenth of a second.
_TIMES_AS_LONG: Final = 40
# Older values are not shown.
_SECONDS_STALE: Final = 15.0


class Renewed(Generic[Value]):
    """A value of about an age, however many pages ask for it.

    Args:
        ask: Asks Postgres for it.
        seconds_fresh: It is asked for again when it is so old, or older where asking takes long.
    """

    def __init__(self, ask: Callable[[], Awaitable[Value]], seconds_fresh: float) -> None:
        self._ask_for = ask
        self._seconds_fresh = seconds_fresh
        self._lock = asyncio.Lock()
        self._latest: Value | None = None
        self._asked_at = 0.0
        self._took = 0.0
        # What was asked before the last of them is not kept.
        self._changes = 0
        self._refresh: asyncio.Task[None] | None = None

    def forget(self) -> None:
        """Ask again for the next page, since something was changed here."""
        self._latest = None
        self._changes += 1

    async def latest(self) -> Value:
        """The value; a page waits for it only at first, and after nobody has looked for a while."""
        found = self._latest
        if found is None or self._is_stale():
            async with self._lock:
                # Another page may have asked while this one waited.
                found = self._latest
                return await self._ask() if found is None or self._is_stale() else found
        is_old = self._age() > max(self._seconds_fresh, _TIMES_AS_LONG * self._took)
        if is_old and (self._refresh is None or self._refresh.done()):
            self._refresh = asyncio.create_task(self._renew())
        return found

    def _age(self) -> float:
        return time.monotonic() - self._asked_at

    def _is_stale(self) -> bool:
        return self._age() > max(_SECONDS_STALE, 3 * self._seconds_fresh)

    async def _renew(self) -> None:
        async with self._lock:
            try:
                await self._ask()
            except Error:
                # The next page asks by itself, and shows the error.
                self._latest = None

    async def _ask(self) -> Value:
        begun, changes = time.monotonic(), self._changes
        found = await self._ask_for()
        if changes == self._changes:
            self._latest, self._asked_at = found, begun
        self._took = time.monotonic() - begun
        return found

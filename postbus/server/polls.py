"""A request that waits for messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Poll:
    """One request that waits.

    Args:
        confirm: Raises if the token of the request is no longer valid.
        is_stopping: Whether the server stops.

    Attributes:
        signal: Set when it is its turn to receive, or when it has to end.
        ended: It must not wait any longer: its client is gone, or the server stops.
    """

    def __init__(self, *, confirm: Callable[[], Awaitable[None]], is_stopping: Callable[[], bool]) -> None:
        self._confirm = confirm
        self._is_stopping = is_stopping
        self.signal = asyncio.Event()
        self.ended = False

    def end(self) -> None:
        self.ended = True
        self.signal.set()

    @property
    def is_abandoned(self) -> bool:
        """Whether its client is gone, so that nobody takes what is received."""
        return self.ended and not self._is_stopping()

    async def confirm(self) -> None:
        """Refuse to wait any longer with a token that is no longer valid.

        Raises:
            Problem: 401.
        """
        await self._confirm()

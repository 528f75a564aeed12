"""Requests that wait for messages: what ends them before their time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from postbus.server.calls import Call


class Poll:
    """One request that waits.

    Attributes:
        call: It.
        signal: Set when it should look up: its turn has come, or it is ended.
        ended: Whether it is to wait no longer: its client is gone, or the server stops.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.signal = asyncio.Event()
        self.ended = False

    def end(self) -> None:
        self.ended = True
        self.signal.set()

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody is there to take what is received."""
        return self.ended and not self.call.service.stopping

    async def confirm(self) -> None:
        """Go on waiting only with a token that is still valid.

        Raises:
            Problem: 401.
        """
        await self.call.service.guard.confirm(self.call.token)


@contextlib.asynccontextmanager
async def watched(call: Call) -> AsyncIterator[Poll]:
    """A poll that ends when its client goes away. The body of the request was read."""
    poll = Poll(call)
    watch = asyncio.create_task(_watch(call, poll))
    try:
        yield poll
    finally:
        watch.cancel()


async def _watch(call: Call, poll: Poll) -> None:
    while (await call.request.receive())["type"] != "http.disconnect":
        pass
    poll.end()

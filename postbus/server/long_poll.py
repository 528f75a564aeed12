"""Ends a request that waits for messages when its client goes away."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from postbus.server.calls import Call
from postbus.server.polls import Poll


@contextlib.asynccontextmanager
async def watched(call: Call) -> AsyncIterator[Poll]:
    """A poll that ends when its client goes away. The body of the request was read before."""
    service = call.service
    poll = Poll(confirm=lambda: service.guard.confirm(call.token), is_stopping=lambda: service.stopping)
    watch = asyncio.create_task(_watch(call, poll))
    try:
        yield poll
    finally:
        watch.cancel()


async def _watch(call: Call, poll: Poll) -> None:
    while (await call.request.receive())["type"] != "http.disconnect":
        pass
    poll.end()

"""One suite for both twins: the sync bus with methods that can be awaited like those of the async one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

import postbus


class AwaitableBus:
    """Passes each call to a sync bus in a thread."""

    def __init__(self, bus: postbus.Bus) -> None:
        self._bus = bus

    @property
    def url(self) -> str:
        return self._bus.url

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._bus, name)
        if inspect.isgeneratorfunction(method):
            return lambda *args, **kwargs: _iterate(method(*args, **kwargs))
        return lambda *args, **kwargs: asyncio.to_thread(method, *args, **kwargs)


async def _iterate(values: Iterator[Any]) -> AsyncIterator[Any]:
    end = object()
    while (value := await asyncio.to_thread(next, values, end)) is not end:
        yield value

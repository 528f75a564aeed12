"""The few things that async and sync code wait with; the generated twin uses the one where the other is written."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any


class AsyncSignal:
    """Something that one task waits for and another sets."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Wait until it is set, or time is up; it is unset afterwards."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)
        self._event.clear()


class Signal:
    """Something that one thread waits for and another sets."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Wait until it is set, or time is up; it is unset afterwards."""
        self._event.wait(seconds)
        self._event.clear()


class AsyncBackground:
    """Runs a function in a task, which ends with the loop."""

    def __init__(self, function: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        self._task = asyncio.create_task(function(), name=name)

    async def join(self, seconds: float) -> None:
        """Wait until the function returns; cancel it when time is up."""
        await asyncio.wait({self._task}, timeout=seconds)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})


class Background:
    """Runs a function in a thread, which does not keep the process alive."""

    def __init__(self, function: Callable[[], None], name: str) -> None:
        self._thread = threading.Thread(target=function, name=name, daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait until the function returns, or time is up."""
        if self._thread is not threading.current_thread():
            self._thread.join(seconds)


async def async_sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def sleep(seconds: float) -> None:
    time.sleep(seconds)

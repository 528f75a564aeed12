"""The few things that async and sync code wait with; the generated twin uses the one where the other is written."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time


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


async def async_sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def sleep(seconds: float) -> None:
    time.sleep(seconds)

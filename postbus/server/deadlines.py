"""Ends requests that take too long, so that one that waits for a lock in Postgres does not keep a connection for ever.

A timer for each request would cost a twentieth of it. So one looks at all of them, once a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator

from postbus.model.errors import ConnectionLost

_LOOK_SECONDS = 1.0


def took_too_long(seconds: float) -> ConnectionLost:
    """The error of what Postgres did not answer in time."""
    return ConnectionLost(
        f"Postgres did not answer within {seconds:g} s",
        "the call may or may not have taken effect; perhaps a transaction holds a lock on the stream: postbus doctor says which",
    )


class Deadlines:
    """The requests of a process that are under way, and until when."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until: dict[asyncio.Task[object], float] = {}
        self._overdue: set[asyncio.Task[object]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    @contextlib.contextmanager
    def kept(self, wait: float) -> Iterator[None]:
        """Do something within the time that there is, and that it may wait besides.

        Raises:
            ConnectionLost: It took longer.
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self._until[task] = time.monotonic() + self.seconds + wait
        try:
            yield
        except asyncio.CancelledError:
            if task in self._overdue and task.uncancel() == 0:
                raise took_too_long(self.seconds) from None
            raise
        finally:
            del self._until[task]
            self._overdue.discard(task)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            for task, until in list(self._until.items()):
                if now >= until and task not in self._overdue:
                    self._overdue.add(task)
                    task.cancel()

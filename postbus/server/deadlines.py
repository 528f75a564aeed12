"""Ends requests that take too long, so that one that waits for a lock in Postgres does not keep its connection indefinitely.

A timer per request would cost 5 µs, and a small request takes about 70. Instead one task checks all requests once a second, for
1 µs each.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType

from postbus.model.errors import ConnectionLost

_LOOK_SECONDS = 1.0


def took_too_long(seconds: float) -> ConnectionLost:
    """The error of a call that Postgres did not answer in time."""
    return ConnectionLost(
        f"Postgres did not answer within {seconds:g} s",
        "the call may or may not have taken effect; a transaction may hold a lock on the stream: postbus doctor shows which",
    )


class _Kept:
    __slots__ = ("_deadlines", "_task", "_wait")

    def __init__(self, deadlines: Deadlines, wait: float) -> None:
        self._deadlines = deadlines
        self._wait = wait

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self._task: asyncio.Task[object] = task
        self._deadlines.begin(task, self._wait)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_overdue = self._deadlines.end(self._task)
        if is_overdue and self._task.uncancel() == 0 and isinstance(error, asyncio.CancelledError):
            raise took_too_long(self._deadlines.seconds) from None


class Deadlines:
    """The deadlines of a process's running requests."""

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

    def kept(self, wait: float) -> _Kept:
        """A context that ends with `ConnectionLost` after the time limit and `wait` seconds have passed."""
        return _Kept(self, wait)

    def begin(self, task: asyncio.Task[object], wait: float) -> None:
        self._until[task] = time.monotonic() + self.seconds + wait

    def end(self, task: asyncio.Task[object]) -> bool:
        """Whether the task was cancelled because it took too long."""
        del self._until[task]
        if task not in self._overdue:
            return False
        self._overdue.discard(task)
        return True

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            for task, until in list(self._until.items()):
                if now >= until and task not in self._overdue:
                    self._overdue.add(task)
                    task.cancel()

"""Work on a second connection, one step ahead of what the first does with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Event, Semaphore, Thread
from typing import Final, Generic, TypeVar

from postbus.db import session
from postbus.db.session import Session

# Fewer are not worth a connection.
_FEW: Final = 2
_STEPS_AHEAD: Final = 2
# A pooler may have no second connection while the first is in use, and lets us wait for it. Or somebody waits for the first
# one's locks, and the second one behind him.
_PATIENCE_SECONDS: Final = 3.0

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_Work = Callable[[Session, _Task], _Result]


@contextmanager
def prepared(
    url: str, database: Session, tasks: Sequence[_Task], work: _Work[_Task, _Result]
) -> Iterator[Iterator[_Result]]:
    """What the work makes of each task, done by a second connection; by the first one where there is no other, or few tasks."""
    if len(tasks) <= _FEW:
        yield (work(database, task) for task in tasks)
        return
    helper = _Helper(url, tasks, work)
    try:
        yield helper.results(database)
    finally:
        helper.stop()


class _Helper(Generic[_Task, _Result]):
    def __init__(self, url: str, tasks: Sequence[_Task], work: _Work[_Task, _Result]) -> None:
        self._url = url
        self._tasks = tasks
        self._work = work
        self._room = Semaphore(_STEPS_AHEAD)
        self._is_over = Event()
        self._done: SimpleQueue[_Result | Exception] = SimpleQueue()
        self._thread = Thread(target=self._run, name="postbus-ahead", daemon=True)
        self._thread.start()

    def results(self, database: Session) -> Iterator[_Result]:
        for task in self._tasks:
            result = None if self._is_over.is_set() else self._next()
            if result is None:
                # Whatever the reason was: if it was not the second connection, this one fails the same way.
                self.stop()
                result = self._work(database, task)
            yield result

    def _next(self) -> _Result | None:
        try:
            result = self._done.get(timeout=_PATIENCE_SECONDS)
        except Empty:
            return None
        self._room.release()
        return None if isinstance(result, Exception) else result

    def stop(self) -> None:
        self._is_over.set()
        self._room.release()

    def _run(self) -> None:
        try:
            with session.transaction(self._url) as database:
                for task in self._tasks:
                    self._room.acquire()
                    if self._is_over.is_set():
                        return
                    self._done.put(self._work(database, task))
        except Exception as error:
            self._done.put(error)

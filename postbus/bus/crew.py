"""Who does the work of a worker: tasks for the async one, threads for the sync one. The generated twin uses the other."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import math
import queue
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from postbus.bus.hand import Job
from postbus.model.errors import InvalidInput

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# A signal that another thread takes, or that comes in the moment before the main thread goes to sleep, does not wake it.
_SIGNAL_SECONDS: Final = 0.5


class GivenUp(Exception):
    """A handler was told to end, and did."""


class Threads:
    """Daemon threads that are used again: one that hangs keeps no process alive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle_count = 0
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def start(self, work: Callable[[], None]) -> None:
        with self._lock:
            is_new = not self._idle_count
            if not is_new:
                self._idle_count -= 1
        self._work.put(work)
        if is_new:
            threading.Thread(target=self._run, name="postbus-worker", daemon=True).start()

    def close(self) -> None:
        """Let those go that have nothing to do."""
        with self._lock:
            idle_count, self._idle_count = self._idle_count, 0
        for _ in range(idle_count):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            with self._lock:
                self._idle_count += 1


class AsyncCrew:
    """The tasks of one worker.

    Args:
        handler: What they call: an async function, or one that blocks, which is then called in a thread.
        catch_signals: Whether SIGTERM and SIGINT stop the worker, if it runs in the main thread.
        with_transaction: Whether the handler gets a connection.
    """

    def __init__(self, handler: Callable[..., Any], *, catch_signals: bool, with_transaction: bool) -> None:
        self._handler = handler
        self._is_blocking = not _is_async(handler)
        if self._is_blocking and with_transaction:
            raise InvalidInput(
                "with transaction=True the handler of an async worker has to be async",
                "its connection is an async one; make it `async def`, or use postbus.connect",
            )
        self._catch_signals = catch_signals
        self._threads = Threads()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._clerk: asyncio.Task[None] | None = None
        self._early: list[Callable[[], None]] = []
        self._error: BaseException | None = None
        self._stop: Callable[[], None] = lambda: None

    async def oversee(self, clerk: Callable[[], Coroutine[Any, Any, None]], stop: Callable[[], None]) -> None:
        """Run the clerk until it is done. Signals and cancellation stop it, and its error is raised."""
        self._loop = asyncio.get_running_loop()
        self._stop = stop
        self._clerk = self._loop.create_task(clerk())
        for function in self._early:
            function()
        try:
            with self._signals(stop):
                await self._wait_for_clerk()
        finally:
            self._clerk.cancel()
            for task in self._tasks:
                task.cancel()
            self._threads.close()
        if self._error is not None:
            raise self._error

    def start(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Do something meanwhile. If it fails, the worker stops and raises it."""
        task = asyncio.get_running_loop().create_task(work(*arguments))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def call(self, function: Callable[[], None]) -> None:
        """Call something soon, from wherever this is called."""
        if self._loop is None:
            self._early.append(function)
            return
        with suppress(RuntimeError):  # The loop was closed meanwhile.
            self._loop.call_soon_threadsafe(function)

    def hurry(self, seconds: float) -> None:
        """Leave after that time, whatever the clerk is about."""
        if self._loop is not None and self._clerk is not None:
            self._loop.call_later(seconds, self._clerk.cancel)

    async def handle(self, job: Job, *arguments: Any) -> None:
        """Call the handler.

        Raises:
            GivenUp: It was interrupted.
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        job.task = task
        try:
            if self._is_blocking:
                result = await self._in_thread(*arguments)
                if inspect.isawaitable(result):
                    await result
            else:
                await self._handler(*arguments)
        except asyncio.CancelledError as error:
            if job.is_interrupted:
                raise GivenUp from None
            if not task.cancelling():
                raise RuntimeError("the handler was cancelled") from error
            raise
        finally:
            job.task = None
            if job.is_interrupted:
                task.uncancel()

    def interrupt(self, job: Job) -> bool:
        """Tell a handler to end; False if it cannot be told."""
        if job.is_interrupted or job.task is None:
            return False
        job.is_interrupted = True
        job.task.cancel()
        return True

    async def _in_thread(self, *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def answer(result: Any, error: BaseException | None) -> None:
            if done.done():
                return  # It was given up.
            if error is None:
                done.set_result(result)
            elif isinstance(error, StopIteration | SystemExit | KeyboardInterrupt):
                done.set_exception(RuntimeError(f"the handler raised {type(error).__name__}"))
            else:
                done.set_exception(error)

        def run() -> None:
            result, error = None, None
            try:
                result = context.run(self._handler, *arguments)
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # The loop was closed meanwhile.
                loop.call_soon_threadsafe(answer, result, error)

        self._threads.start(run)
        return await done

    async def _wait_for_clerk(self) -> None:
        assert self._clerk is not None  # noqa: S101
        cancelled: asyncio.CancelledError | None = None
        while not self._clerk.done():
            try:
                await asyncio.wait([self._clerk])
            except asyncio.CancelledError as error:
                cancelled = error
                self._stop()
        if cancelled is not None:
            raise cancelled
        if not self._clerk.cancelled() and (failure := self._clerk.exception()) is not None:
            raise failure

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error
            self._stop()

    @contextmanager
    def _signals(self, stop: Callable[[], None]) -> Iterator[None]:
        if not self._catch_signals or not _in_main_thread() or self._loop is None:
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            self._loop.add_signal_handler(number, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                self._loop.remove_signal_handler(number)
                signal.signal(number, handler)


class Crew:
    """The threads of one worker.

    Args:
        handler: What they call.
        catch_signals: Whether SIGTERM and SIGINT stop the worker, if it runs in the main thread.
        with_transaction: Whether the handler gets a connection.
    """

    def __init__(self, handler: Callable[..., Any], *, catch_signals: bool, with_transaction: bool) -> None:
        if _is_async(handler):
            raise InvalidInput("an async handler needs an async worker", "use postbus.connect_async")
        self._handler = handler
        self._catch_signals = catch_signals
        self._threads = Threads()
        # A queue that signal handlers may write to.
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._stop: Callable[[], None] = lambda: None
        self._leave_at = math.inf

    def oversee(self, clerk: Callable[[], None], stop: Callable[[], None]) -> None:
        """Run the clerk until it is done. Signals stop it, and its error is raised."""
        self._stop = stop
        self._threads.start(lambda: self._run_clerk(clerk))
        with self._signals(stop):
            interrupted = self._wait_for_clerk()
        self._threads.close()
        if interrupted is not None:
            raise interrupted
        if self._error is not None:
            raise self._error

    def start(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do something meanwhile. If it fails, the worker stops and raises it."""
        self._threads.start(lambda: self._run(work, *arguments))

    def call(self, function: Callable[[], None]) -> None:
        """Call something soon, from wherever this is called."""
        self._calls.put(function)

    def hurry(self, seconds: float) -> None:
        """Leave after that time, whatever the clerk is about."""
        self._leave_at = time.monotonic() + seconds

    def handle(self, job: Job, *arguments: Any) -> None:
        """Call the handler."""
        result = self._handler(*arguments)
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError("the handler is async: use postbus.connect_async")

    def interrupt(self, job: Job) -> bool:
        """A thread cannot be told to end."""
        return False

    def _run_clerk(self, clerk: Callable[[], None]) -> None:
        self._run(clerk)
        self._calls.put(None)

    def _run(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            self._error = self._error or error
            self._calls.put(self._stop)

    def _wait_for_clerk(self) -> KeyboardInterrupt | None:
        interrupted = None
        while (left := self._leave_at - time.monotonic()) > 0:
            try:
                call = self._calls.get(timeout=min(left, _SIGNAL_SECONDS))
                if call is None:
                    break
                call()
            except queue.Empty:
                continue
            except KeyboardInterrupt as error:
                interrupted = error
                self._calls.put(self._stop)
        return interrupted

    @contextmanager
    def _signals(self, stop: Callable[[], None]) -> Iterator[None]:
        if not self._catch_signals or not _in_main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            signal.signal(number, lambda *_: self._calls.put(stop))
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _is_async(handler: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()

"""Runs the receive loop and the handlers of a worker: as tasks in the async worker, in threads in the sync one."""

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

from postbus.model.errors import InvalidInput
from postbus.worker.tasks import Task

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# The main thread looks for signals this often: one that arrives just before it starts to wait does not wake it.
_SIGNAL_SECONDS: Final = 0.5


class HandlerCancelled(Exception):
    """A handler was cancelled, and ended."""


class Threads:
    """A pool of daemon threads: one that hangs does not keep the process alive."""

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
        """End the idle threads."""
        with self._lock:
            idle_count, self._idle_count = self._idle_count, 0
        for _ in range(idle_count):
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            with self._lock:
                self._idle_count += 1


class AsyncExecutor:
    """The tasks of one worker.

    Args:
        handler: An async function, or a blocking one, which is called in a thread.
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
        self._receive_loop: asyncio.Task[None] | None = None
        self._early: list[Callable[[], None]] = []
        self._error: BaseException | None = None
        self._stop: Callable[[], None] = lambda: None

    async def run(self, receive_loop: Callable[[], Coroutine[Any, Any, None]], stop: Callable[[], None]) -> None:
        """Run the receive loop until it ends. Signals and cancellation stop it. Its error is raised."""
        self._loop = asyncio.get_running_loop()
        self._stop = stop
        self._receive_loop = self._loop.create_task(receive_loop())
        for function in self._early:
            function()
        try:
            with self._signals(stop):
                await self._wait_for_receive_loop()
        finally:
            self._receive_loop.cancel()
            for task in self._tasks:
                task.cancel()
            self._threads.close()
        if self._error is not None:
            raise self._error

    def start(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Run a function beside the receive loop. If it fails, the worker stops and raises the error."""
        task = asyncio.get_running_loop().create_task(work(*arguments))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function soon. Safe to use from any thread."""
        if self._loop is None:
            self._early.append(function)
            return
        with suppress(RuntimeError):  # The loop was closed meanwhile.
            self._loop.call_soon_threadsafe(function)

    def expire(self, seconds: float) -> None:
        """End the worker after that time, whatever the receive loop is doing."""
        if self._loop is not None and self._receive_loop is not None:
            self._loop.call_later(seconds, self._receive_loop.cancel)

    async def call_handler(self, task: Task, *arguments: Any) -> Any:
        """Call the handler. Returns what it returned.

        Raises:
            HandlerCancelled: It was cancelled.
        """
        runner = asyncio.current_task()
        assert runner is not None  # noqa: S101
        task.runner = runner
        try:
            if self._is_blocking:
                result = await self._in_thread(*arguments)
                return await result if inspect.isawaitable(result) else result
            return await self._handler(*arguments)
        except asyncio.CancelledError as error:
            if task.is_cancelled:
                raise HandlerCancelled from None
            if not runner.cancelling():
                raise RuntimeError("the handler was cancelled") from error
            raise
        finally:
            task.runner = None
            if task.is_cancelled:
                runner.uncancel()

    def cancel(self, task: Task) -> bool:
        """Cancel a handler; False if it cannot be cancelled, or was already."""
        if task.is_cancelled or task.runner is None:
            return False
        task.is_cancelled = True
        task.runner.cancel()
        return True

    async def _in_thread(self, *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        context = contextvars.copy_context()

        def answer(result: Any, error: BaseException | None) -> None:
            if done.done():
                return  # The task was cancelled.
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

    async def _wait_for_receive_loop(self) -> None:
        assert self._receive_loop is not None  # noqa: S101
        cancelled: asyncio.CancelledError | None = None
        while not self._receive_loop.done():
            try:
                await asyncio.wait([self._receive_loop])
            except asyncio.CancelledError as error:
                cancelled = error
                self._stop()
        if cancelled is not None:
            raise cancelled
        if not self._receive_loop.cancelled() and (failure := self._receive_loop.exception()) is not None:
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


class Executor:
    """The threads of one worker.

    Args:
        handler: A function.
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

    def run(self, receive_loop: Callable[[], None], stop: Callable[[], None]) -> None:
        """Run the receive loop until it ends. Signals stop it. Its error is raised."""
        self._stop = stop
        self._threads.start(lambda: self._run_receive_loop(receive_loop))
        with self._signals(stop):
            interrupted = self._wait_for_receive_loop()
        self._threads.close()
        if interrupted is not None:
            raise interrupted
        if self._error is not None:
            raise self._error

    def start(self, work: Callable[..., None], *arguments: Any) -> None:
        """Run a function beside the receive loop. If it fails, the worker stops and raises the error."""
        self._threads.start(lambda: self._run(work, *arguments))

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function soon. Safe to use from any thread."""
        self._calls.put(function)

    def expire(self, seconds: float) -> None:
        """End the worker after that time, whatever the receive loop is doing."""
        self._leave_at = time.monotonic() + seconds

    def call_handler(self, task: Task, *arguments: Any) -> Any:
        """Call the handler. Returns what it returned."""
        result = self._handler(*arguments)
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError("the handler is async: use postbus.connect_async")
        return result

    def cancel(self, task: Task) -> bool:
        """A thread cannot be cancelled."""
        return False

    def _run_receive_loop(self, receive_loop: Callable[[], None]) -> None:
        self._run(receive_loop)
        self._calls.put(None)

    def _run(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            self._error = self._error or error
            self._calls.put(self._stop)

    def _wait_for_receive_loop(self) -> KeyboardInterrupt | None:
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

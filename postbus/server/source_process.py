"""Keeps a process that reads the sources, while there are some: decoding the log would make requests wait.

The process ends when its standard input does, so it does not outlive the server. Run as a program, this module is that process.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import threading

from postbus.db.embedded.locks import FileLock
from postbus.model.errors import Error
from postbus.server import logs
from postbus.server.connection import Connection
from postbus.server.settings import Settings

_LOOK_SECONDS = 2.0
_STOP_SECONDS = 25.0


class SourceProcess:
    """Starts the process in one of the server's processes, and again if it ends."""

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self._connection = connection
        self._settings = settings
        lock = settings.services_lock
        self._lock = None if lock is None else FileLock(lock.with_suffix(".sources"))
        self._has_lock = False
        self._task: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._end_process()
        if self._lock is not None:
            self._lock.release()

    async def _run(self) -> None:
        while True:
            try:
                if self._is_ours() and not self._is_running() and await self._connection.bus.sources.list_all():
                    await self._start_process()
            except Error:
                # Maintenance says so.
                pass
            except OSError as error:
                logs.note("sources are not read", reason=str(error))
            await asyncio.sleep(_LOOK_SECONDS)

    def _is_ours(self) -> bool:
        if self._lock is not None and not self._has_lock:
            self._has_lock = self._lock.try_acquire(shared=False)
        return self._lock is None or self._has_lock

    def _is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def _start_process(self) -> None:
        if self._process is not None:
            logs.note("the process that reads sources has ended", status=self._process.returncode)
        form = "text" if self._settings.log_text else "json"
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "postbus.server.source_process", form, stdin=asyncio.subprocess.PIPE,
            # Ctrl-C is for the server, which then ends it.
            start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None  # noqa: S101
        # Not an argument, which everybody on this machine could see.
        self._process.stdin.write(f"{self._settings.url}\n".encode())
        with contextlib.suppress(ConnectionError):
            await self._process.stdin.drain()

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None  # noqa: S101
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()


def main() -> None:
    """Read sources until standard input ends."""
    from postbus.sources.runner import SourceRunner

    logs.take_over(as_text="text" in sys.argv[1:])
    runner = SourceRunner(sys.stdin.readline().strip())

    def stop_with_input() -> None:
        sys.stdin.read()
        runner.stop()

    threading.Thread(target=stop_with_input, daemon=True).start()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: runner.stop())
    runner.run()


if __name__ == "__main__":
    main()

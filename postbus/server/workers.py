"""Runs several server processes on one socket, and replaces those that die."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from typing import Any

# The shortest time between two starts of a worker that keeps dying.
_PAUSE_SECONDS = 1.0
_STOP_SECONDS = 30.0


class Workers:
    """Runs a function in several processes until SIGINT or SIGTERM."""

    def __init__(self, count: int, work: Callable[..., None], *arguments: Any) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._work = work
        self._arguments = arguments
        self._stopped = threading.Event()
        self._processes: list[SpawnProcess] = [self._new() for _ in range(count)]

    def run(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._stopped.set())
        for process in self._processes:
            process.start()
        while not self._stopped.wait(_PAUSE_SECONDS):
            self._replace_dead()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(_STOP_SECONDS)

    def _new(self) -> SpawnProcess:
        return self._context.Process(target=self._work, args=self._arguments)

    def _replace_dead(self) -> None:
        for place, process in enumerate(self._processes):
            if not process.is_alive():
                self._processes[place] = self._new()
                self._processes[place].start()

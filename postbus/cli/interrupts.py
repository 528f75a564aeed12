"""Ctrl-C in commands that run until they are stopped."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def until_interrupted() -> Iterator[list[int]]:
    """A list that Ctrl-C fills, so that received messages are still printed and acked. A second Ctrl-C ends at once."""
    stopped: list[int] = []

    def stop(number: int, _: object) -> None:
        if stopped:
            raise KeyboardInterrupt
        stopped.append(number)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)

"""File locks that the kernel drops with their holder, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class FileLock:
    """A lock on a file, held until `release` or the end of the process.

    It belongs to the open file, so a forked child holds it too until it ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_acquire(self, *, shared: bool) -> bool:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def acquire(self, *, shared: bool, seconds: float) -> bool:
        """Wait for the lock; False if it was not free in time."""
        end = time.monotonic() + seconds
        while not self.try_acquire(shared=shared):
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_held(path: Path) -> bool:
    """Whether a process holds an exclusive lock on a file."""
    probe = FileLock(path)
    if probe.try_acquire(shared=True):
        probe.release()
        return False
    return True

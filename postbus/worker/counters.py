"""Counts what became of the messages of a worker. Threads share it."""

from __future__ import annotations

import threading

from postbus.model.outcome import WorkSummary


class Counters:
    """The counts of one worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._acked_count = self._failed_count = self._rejected_count = self._lost_count = self._deferred_count = 0

    def add(self, *, acked: int = 0, failed: int = 0, rejected: int = 0, lost: int = 0, deferred: int = 0) -> None:
        with self._lock:
            self._acked_count += acked
            self._failed_count += failed
            self._rejected_count += rejected
            self._lost_count += lost
            self._deferred_count += deferred

    def summary(self) -> WorkSummary:
        with self._lock:
            return WorkSummary(
                acked_count=self._acked_count,
                failed_count=self._failed_count,
                rejected_count=self._rejected_count,
                lost_count=self._lost_count,
                deferred_count=self._deferred_count,
            )

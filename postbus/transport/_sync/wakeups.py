# Generated from postbus/transport/_async/wakeups.py by `make generate`; edit that file.

"""Wakes receivers that wait for messages, with one small query at a time for all of them.

Postgres could notify, but a NOTIFY in each publish would make publishers queue. Instead one waiting receiver looks, for all of
them, whether numbers were drawn: two hundred times a second while there is traffic, ten times after some seconds without. Now
and then, and when it is time for one, it looks for expired leases and due retries. When it leaves, another takes its turn. No
thread or task runs while nobody waits.
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from types import TracebackType
from typing import Final, Self

from postbus._compat import Signal, sleep
from postbus.db import statements
from postbus.db._sync.database import Database
from postbus.db.arrays import BigintArray
from postbus.model.errors import Unavailable

# A stream that was idle for some time is polled again after a fortieth of that time, within these bounds.
_SHORTEST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.1
_PAUSE_SHARE: Final = 1 / 40
# Leases and retries are looked at this often, besides when the next one is due: another process may have nacked. Less often, too,
# where it has long been quiet.
_REDELIVERY_PAUSE: Final = 0.25
_LONGEST_REDELIVERY_PAUSE: Final = 1.0
# A waiter that is not woken tries anyway, after this long at first and then less and less often: another session's mutex may have
# hidden the message that it was woken for, and no further wake-up comes for that message. A new waiter that has found nothing
# twice can wait longer.
_FIRST_TRY_SECONDS: Final = 0.05
_IDLE_TRY_SECONDS: Final = 2.0
_LAST_TRY_SECONDS: Final = 30.0


class Wakeups:
    """The waiting receivers of one bus."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiters: list[Waiter] = []
        self._turn = threading.Lock()
        self._last_wake = 0.0
        self._redelivery_at = 0.0

    def waiter(self, stream: str, consumer: str, timeout: timedelta) -> Waiter:
        return Waiter(self, stream, consumer, timeout.total_seconds())

    def find_consumer(self, stream: str, consumer: str) -> tuple[int, int]:
        """The ids of a consumer and of its stream."""
        ((consumer_id, stream_id),) = self._database.rows(statements.WAITER, (stream, consumer), repeatable=True)
        return consumer_id, stream_id

    def join(self, waiter: Waiter) -> None:
        if not self._waiters:
            self._last_wake = time.monotonic()
        self._waiters.append(waiter)

    def leave(self, waiter: Waiter) -> None:
        self._waiters.remove(waiter)
        # If it was the one that polled, another waiter takes over.
        if self._waiters:
            self._waiters[0].signal.set()

    def take_turn(self) -> bool:
        return self._turn.acquire(blocking=False)

    def end_turn(self) -> None:
        self._turn.release()

    def expect_redelivery(self) -> None:
        """Poll for due retries soon, since this process has just nacked a message."""
        self._redelivery_at = 0.0

    def look(self, at_most: float) -> None:
        """Pause a moment, then wake the receivers that may have messages."""
        quiet = time.monotonic() - self._last_wake
        sleep(min(max(_SHORTEST_PAUSE, min(quiet * _PAUSE_SHARE, _LONGEST_PAUSE)), at_most))
        waiters = list(self._waiters)
        if not waiters:
            return
        try:
            self._look_for_new(waiters)
            if time.monotonic() >= self._redelivery_at:
                self._look_for_redeliveries(waiters)
        except Unavailable:
            return  # If the error persists, the next receive reports it.

    def _look_for_new(self, waiters: list[Waiter]) -> None:
        seen: dict[int, int] = {}
        for waiter in waiters:
            seen[waiter.stream_id] = min(waiter.seen, seen.get(waiter.stream_id, waiter.seen))
        found = self._database.rows(
            statements.PULSE, (BigintArray(list(seen)), BigintArray(list(seen.values()))), repeatable=True
        )
        horizons: dict[int, int | None] = {stream: row[0] for stream, row in zip(seen, found, strict=True)}
        for waiter in waiters:
            horizon = horizons[waiter.stream_id]
            if horizon is None or horizon > waiter.seen:
                waiter.seen = horizon or 0
                self._wake(waiter)
            else:
                waiter.is_new = False

    def _look_for_redeliveries(self, waiters: list[Waiter]) -> None:
        consumers = list({waiter.consumer_id for waiter in waiters})
        found = self._database.rows(statements.PULSE_OF_CONSUMERS, (BigintArray(consumers),), repeatable=True)
        is_awake = {consumer: wake for consumer, (wake, _) in zip(consumers, found, strict=True)}
        quiet = time.monotonic() - self._last_wake
        pause = min(max(_REDELIVERY_PAUSE, quiet * _PAUSE_SHARE), _LONGEST_REDELIVERY_PAUSE)
        next_seconds = min([pause, *(seconds for _, seconds in found if seconds is not None)])
        self._redelivery_at = time.monotonic() + max(next_seconds, _SHORTEST_PAUSE)
        for waiter in waiters:
            if is_awake[waiter.consumer_id]:
                self._wake(waiter)

    def _wake(self, waiter: Waiter) -> None:
        self._last_wake = time.monotonic()
        waiter.woken = True
        waiter.signal.set()


class Waiter:
    """One waiting receive."""

    def __init__(self, wakeups: Wakeups, stream: str, consumer: str, timeout: float) -> None:
        self._wakeups = wakeups
        self._stream = stream
        self._consumer = consumer
        self._end = time.monotonic() + timeout
        self.consumer_id = self.stream_id = 0
        # Up to this seq, there was nothing left to receive.
        self.seen = 0
        self.woken = False
        self.signal = Signal()
        self._try_after = _IDLE_TRY_SECONDS
        self.is_new = True

    def __enter__(self) -> Self:
        self.consumer_id, self.stream_id = self._wakeups.find_consumer(self._stream, self._consumer)
        self._wakeups.join(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wakeups.leave(self)

    def interrupt(self) -> None:
        """End the wait soon."""
        self._end = 0.0
        self.signal.set()

    def wait(self) -> bool:
        """Wait until there may be messages; False after the time limit."""
        try_at = time.monotonic() + self._try_after
        self._try_after = min(2 * self._try_after, _LAST_TRY_SECONDS)
        while not self.woken:
            now = time.monotonic()
            if now >= self._end:
                return False
            if now >= try_at:
                return True
            remaining = min(self._end, try_at) - now
            if self._wakeups.take_turn():
                try:
                    self._wakeups.look(remaining)
                finally:
                    self._wakeups.end_turn()
            else:
                self.signal.wait(remaining)
        self.woken = False
        # The first wake-up covers all messages published before.
        self._try_after = _IDLE_TRY_SECONDS if self.is_new else _FIRST_TRY_SECONDS
        self.is_new = False
        return True

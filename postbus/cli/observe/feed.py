"""The data of the screens: one statement for all streams, and one for the consumers of the selected stream."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from postbus.model.errors import Error

if TYPE_CHECKING:
    from postbus import AsyncBus
    from postbus.model.overview import ConsumerOverview, StreamOverview

HISTORY: Final = 60
# Of the time, this share at most goes into questions that cost something for every stream or consumer.
_SHARE: Final = 0.2
# A consumer that has not got to a message for so long is behind.
_BEHIND: Final = timedelta(minutes=1)


@dataclass(slots=True)
class StreamRow:
    """A stream, and its recent rates.

    Attributes:
        name: Its name.
        overview: Where it stands.
        message_estimate: How many messages it holds, when that was last asked.
        bytes: What it takes on disk, when that was last asked.
        rates: Messages per second, the newest last.
        consumers: Where its consumers stand, when that was last asked.
    """

    name: str
    overview: StreamOverview
    message_estimate: int | None = None
    bytes: int | None = None
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    consumers: list[ConsumerOverview] = field(default_factory=list)

    @property
    def rate(self) -> float | None:
        return self.rates[-1] if self.rates else None

    @property
    def worst(self) -> ConsumerOverview | None:
        """The consumer with the longest backlog."""
        return max(self.consumers, key=lambda each: each.backlog, default=None)

    @property
    def backlog(self) -> int:
        """The longest backlog of its consumers."""
        return 0 if self.worst is None else self.worst.backlog

    @property
    def dead(self) -> int:
        """How many dead letters its consumers have."""
        return sum(each.dead for each in self.consumers)

    def trouble(self, now: datetime) -> str:
        """What is wrong with it: full, dead letters, or a consumer that is behind; empty for nothing."""
        if self.overview.is_full:
            return "FULL"
        if self.dead:
            return "dead"
        unread_since = [each.oldest_unread_at for each in self.consumers if each.oldest_unread_at is not None]
        return "behind" if unread_since and now - min(unread_since) > _BEHIND else ""

    def update(self, overview: StreamOverview, elapsed: float) -> None:
        if elapsed > 0:
            self.rates.append(max(0.0, (overview.last_seq - self.overview.last_seq) / elapsed))
        self.overview = overview
        if overview.bytes is not None:
            self.message_estimate, self.bytes = overview.message_estimate, overview.bytes


class _Pace:
    """When to ask again what takes long."""

    def __init__(self) -> None:
        self._next_at = 0.0
        self._began_at = 0.0

    def is_due(self) -> bool:
        self._began_at = time.monotonic()
        return self._began_at >= self._next_at

    def ended(self) -> None:
        now = time.monotonic()
        self._next_at = now + (now - self._began_at) * (1 / _SHARE - 1)

    def hurry(self) -> None:
        self._next_at = 0.0


class Feed:
    """Keeps the last data of the bus, and why it may be stale.

    Attributes:
        streams: By name.
        problem: Why the last question was not answered; None when it was.
        answered_at: When the last one was, by the monotonic clock.
    """

    def __init__(self, bus: AsyncBus) -> None:
        self.bus = bus
        self.streams: dict[str, StreamRow] = {}
        self.problem: Error | None = None
        self.answered_at: float | None = None
        self._asked_at: float | None = None
        self._sizes = _Pace()
        self._standings = _Pace()

    @property
    def silent_for(self) -> float:
        """How long the current query has been running, in seconds."""
        return 0.0 if self._asked_at is None else time.monotonic() - self._asked_at

    @property
    def total_rate(self) -> float:
        return sum(row.rate or 0.0 for row in self.streams.values())

    async def refresh(self) -> bool:
        """Query the streams. Returns whether the bus answered."""
        self._asked_at = time.monotonic()
        try:
            wants_sizes = self._sizes.is_due()
            found = await self.bus.overview(sizes=wants_sizes)
            if wants_sizes:
                self._sizes.ended()
            standings = None
            if self._standings.is_due():
                standings = await self.bus.consumer_overview()
                self._standings.ended()
        except Error as error:
            self.problem = error
            return False
        finally:
            self._asked_at = None
        now = time.monotonic()
        elapsed = 0.0 if self.answered_at is None else now - self.answered_at
        self._take(found, elapsed)
        if standings is not None:
            self._stand(standings)
        self.answered_at, self.problem = now, None
        return True

    def _take(self, found: list[StreamOverview], elapsed: float) -> None:
        rows = self.streams
        self.streams = {}
        for overview in found:
            row = rows.get(overview.name)
            # A stream that was dropped and created again has no history.
            if row is None or overview.last_seq < row.overview.last_seq:
                row = StreamRow(overview.name, overview)
                elapsed_here = 0.0
            else:
                elapsed_here = elapsed
            row.update(overview, elapsed_here)
            self.streams[overview.name] = row
        if any(row.bytes is None for row in self.streams.values()):
            self._sizes.hurry()  # A new one: ask next time.

    def _stand(self, standings: list[ConsumerOverview]) -> None:
        by_stream: dict[str, list[ConsumerOverview]] = {}
        for each in standings:
            by_stream.setdefault(each.stream, []).append(each)
        for name, row in self.streams.items():
            row.consumers = by_stream.get(name, [])

    async def consumers(self, stream: str) -> list[ConsumerOverview]:
        """The consumers of a stream; none if the bus does not answer."""
        try:
            return await self.bus.consumer_overview(stream)
        except Error as error:
            if stream in self.streams:
                self.problem = error
            return []

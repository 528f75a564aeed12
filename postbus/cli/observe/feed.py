"""The data of the screens: one statement for all streams, and one for the consumers of the selected stream."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from postbus.model.errors import Error

if TYPE_CHECKING:
    from postbus import AsyncBus
    from postbus.model.overview import ConsumerOverview, StreamOverview

HISTORY: Final = 60
# Sizes cost a look at the files of every stream, and change slowly.
_SIZE_SECONDS: Final = 30.0


@dataclass(slots=True)
class StreamRow:
    """A stream, and its recent rates.

    Attributes:
        name: Its name.
        overview: Where it stands.
        message_estimate: How many messages it holds, when that was last asked.
        bytes: What it takes on disk, when that was last asked.
        rates: Messages per second, the newest last.
    """

    name: str
    overview: StreamOverview
    message_estimate: int | None = None
    bytes: int | None = None
    rates: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))

    @property
    def rate(self) -> float | None:
        return self.rates[-1] if self.rates else None

    def update(self, overview: StreamOverview, elapsed: float) -> None:
        if elapsed > 0:
            self.rates.append(max(0.0, (overview.last_seq - self.overview.last_seq) / elapsed))
        self.overview = overview
        if overview.bytes is not None:
            self.message_estimate, self.bytes = overview.message_estimate, overview.bytes


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
        self._sizes_at = 0.0

    @property
    def silent_for(self) -> float:
        """How long the current query has been running, in seconds."""
        return 0.0 if self._asked_at is None else time.monotonic() - self._asked_at

    @property
    def total_rate(self) -> float:
        return sum(row.rate or 0.0 for row in self.streams.values())

    async def refresh(self) -> bool:
        """Query the streams. Returns whether the bus answered."""
        wants_sizes = time.monotonic() >= self._sizes_at
        self._asked_at = time.monotonic()
        try:
            found = await self.bus.overview(sizes=wants_sizes)
        except Error as error:
            self.problem = error
            return False
        finally:
            self._asked_at = None
        now = time.monotonic()
        elapsed = 0.0 if self.answered_at is None else now - self.answered_at
        if wants_sizes:
            self._sizes_at = now + _SIZE_SECONDS
        self._take(found, elapsed)
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
            self._sizes_at = 0.0  # A new one: ask next time.

    async def consumers(self, stream: str) -> list[ConsumerOverview]:
        """The consumers of a stream; none if the bus does not answer."""
        try:
            return await self.bus.consumer_overview(stream)
        except Error as error:
            if stream in self.streams:
                self.problem = error
            return []

"""Figures that all pages of a process share, so that many open tabs cost no more than one."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from postbus.doctor import diagnosis, postgres
from postbus.doctor.finding import Finding
from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.pipeline import PipelineInfo

if TYPE_CHECKING:
    from postbus.server.connection import Connection

# Pages ask every two seconds.
_SECONDS_FRESH: Final = 1.0
_SECONDS_BETWEEN_SAMPLES: Final = 4.0
_MOST_SAMPLES: Final = 75
_SECONDS_OF_DOCTOR: Final = 30.0
_SECONDS_OF_CHART: Final = 10.0
_MOST_CHARTS: Final = 200
CHART_SPAN: Final = timedelta(hours=1)
CHART_BUCKETS: Final = 60


@dataclass(frozen=True, slots=True)
class Figures:
    """How all streams, consumers and pipelines stand at one moment."""

    streams: Sequence[StreamOverview]
    consumers: Sequence[ConsumerOverview]
    pipelines: Sequence[PipelineInfo]

    def by_stream(self) -> dict[str, list[ConsumerOverview]]:
        """The consumers of each stream that has any."""
        found: dict[str, list[ConsumerOverview]] = {}
        for each in self.consumers:
            found.setdefault(each.stream, []).append(each)
        return found


class FigureCache:
    """Asks Postgres for figures, at most about once a second however many pages are open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = asyncio.Lock()
        self._latest: Figures | None = None
        self._asked_at = 0.0
        self._samples: deque[tuple[float, Mapping[str, int]]] = deque(maxlen=_MOST_SAMPLES)
        self._findings: list[Finding] = []
        self._findings_at = -_SECONDS_OF_DOCTOR
        self._charts: dict[str, tuple[float, list[int]]] = {}

    def forget(self) -> None:
        """Ask again for the next page, since something was changed here."""
        self._asked_at = 0.0
        self._charts.clear()

    async def latest(self) -> Figures:
        """Figures that are about a second old, at most."""
        async with self._lock:
            now = time.monotonic()
            if self._latest is None or now - self._asked_at > _SECONDS_FRESH:
                bus = self._connection.bus
                self._latest = Figures(await bus.overview(), await bus.consumer_overview(), await bus.list_pipelines())
                self._asked_at = now
                self._sample(now, self._latest.streams)
            return self._latest

    def rates(self, stream: str) -> list[float]:
        """Messages published per second between the last looks at it, the oldest first."""
        found: list[float] = []
        for (before, old), (after, new) in zip(self._samples, list(self._samples)[1:], strict=False):
            if stream in old and stream in new:
                found.append(max(0, new[stream] - old[stream]) / (after - before))
        return found

    def rate(self, stream: str) -> float | None:
        """Messages published per second just now; None if that is not known yet."""
        rates = self.rates(stream)
        return rates[-1] if rates else None

    async def findings(self) -> list[Finding]:
        """What is wrong with Postgres and Postbus, as `postbus doctor` finds it; at most half a minute old."""
        async with self._lock:
            now = time.monotonic()
            if now - self._findings_at >= _SECONDS_OF_DOCTOR:
                facts = await asyncio.to_thread(diagnosis.examine, self._connection.bus.url)
                self._findings = list(postgres.check(diagnosis.without_queries(facts), machine="the server"))
                self._findings_at = now
            return self._findings

    async def chart(self, stream: str) -> list[int]:
        """How many messages were published in each minute of the last hour."""
        now = time.monotonic()
        asked_at, counts = self._charts.get(stream, (-_SECONDS_OF_CHART, []))
        if now - asked_at >= _SECONDS_OF_CHART:
            counts = await self._connection.bus.publish_counts(stream, span=CHART_SPAN, buckets=CHART_BUCKETS)
            if len(self._charts) >= _MOST_CHARTS:
                self._charts.clear()
            self._charts[stream] = (now, counts)
        return counts

    def _sample(self, now: float, found: Sequence[StreamOverview]) -> None:
        if self._samples and now - self._samples[-1][0] < _SECONDS_BETWEEN_SAMPLES:
            return
        if self._samples and now - self._samples[-1][0] > 10 * _SECONDS_BETWEEN_SAMPLES:
            # Nobody has looked for a while: a rate over the gap would be no rate of now.
            self._samples.clear()
        self._samples.append((now, {each.name: each.last_seq for each in found}))

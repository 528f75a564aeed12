"""Figures that all pages of a process share, so that many open tabs cost no more than one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from postbus.doctor import diagnosis, postgres
from postbus.doctor.finding import Finding
from postbus.model.errors import Error
from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.pipeline import PipelineInfo

if TYPE_CHECKING:
    from postbus.server.connection import Connection

# Pages ask every two seconds. Figures are asked for again when they are so old, or this many times as old as asking took: with a
# thousand streams it takes a tenth of a second.
_SECONDS_FRESH: Final = 1.0
_TIMES_AS_LONG: Final = 40
# Older figures are not shown.
_SECONDS_STALE: Final = 15.0
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
        self._took = 0.0
        # What was asked before the last of them is not kept.
        self._changes = 0
        self._refresh: asyncio.Task[None] | None = None
        self._samples: deque[tuple[float, Mapping[str, int]]] = deque(maxlen=_MOST_SAMPLES)
        self._examining = asyncio.Lock()
        self._examination: asyncio.Task[None] | None = None
        self._findings: list[Finding] = []
        self._findings_at = -_SECONDS_OF_DOCTOR
        self._charts: dict[str, tuple[float, list[int]]] = {}

    def forget(self) -> None:
        """Ask again for the next page, since something was changed here."""
        self._latest = None
        self._changes += 1
        self._charts.clear()

    async def latest(self) -> Figures:
        """Figures that are about a second old, or a few where asking takes long. They are renewed behind a page's back."""
        found = self._latest
        if found is None or self._age() > _SECONDS_STALE:
            async with self._lock:
                # Another page may have asked while this one waited.
                found = self._latest
                return await self._ask() if found is None or self._age() > _SECONDS_STALE else found
        age = self._age()
        if age > max(_SECONDS_FRESH, _TIMES_AS_LONG * self._took) and (self._refresh is None or self._refresh.done()):
            self._refresh = asyncio.create_task(self._renew())
        return found

    def _age(self) -> float:
        return time.monotonic() - self._asked_at

    async def _renew(self) -> None:
        async with self._lock:
            try:
                await self._ask()
            except Error:
                # The next page asks by itself, and shows the error.
                self._latest = None

    async def _ask(self) -> Figures:
        bus = self._connection.bus
        begun, changes = time.monotonic(), self._changes
        found = Figures(await bus.overview(), await bus.consumer_overview(), await bus.list_pipelines())
        if changes == self._changes:
            self._latest, self._asked_at = found, begun
        self._took = time.monotonic() - begun
        self._sample(begun, found.streams)
        return found

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
        async with self._examining:
            now = time.monotonic()
            if now - self._findings_at >= _SECONDS_OF_DOCTOR:
                facts = await asyncio.to_thread(diagnosis.examine, self._connection.bus.url)
                self._findings = list(postgres.check(diagnosis.without_queries(facts), machine="the server"))
                self._findings_at = now
            return self._findings

    def known_findings(self) -> list[Finding]:
        """What was wrong when somebody looked last. It is looked at again behind the page's back."""
        is_old = time.monotonic() - self._findings_at >= _SECONDS_OF_DOCTOR
        if is_old and (self._examination is None or self._examination.done()):
            self._examination = asyncio.create_task(self._examine())
        return self._findings

    async def _examine(self) -> None:
        with contextlib.suppress(Error):
            await self.findings()

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

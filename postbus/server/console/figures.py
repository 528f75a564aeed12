"""Figures that all pages of a process share, so that many open tabs cost no more than one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from postbus.doctor import diagnosis, postgres
from postbus.doctor.finding import Finding
from postbus.model.errors import Error
from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.pipeline import PipelineInfo
from postbus.model.push import PushInfo
from postbus.model.schedule import ScheduleInfo
from postbus.model.source import SourceInfo
from postbus.model.webhook import WebhookSourceInfo
from postbus.server.console.renewed import Renewed

if TYPE_CHECKING:
    from postbus.server.connection import Connection

# Pages ask every two seconds.
_SECONDS_FRESH: Final = 1.0
_SECONDS_SERVICES_FRESH: Final = 5.0
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


@dataclass(frozen=True, slots=True)
class Services:
    """What publishes and sends by itself."""

    sources: Sequence[SourceInfo]
    webhooks: Sequence[WebhookSourceInfo]
    pushes: Sequence[PushInfo]
    schedules: Sequence[ScheduleInfo]


@dataclass(frozen=True, slots=True)
class Sample:
    """Figures of one look that are kept for a few minutes.

    Attributes:
        at: When that was, by the clock that only goes forward.
        last_seqs: The last seq of each stream.
        backlogs: The backlog of each consumer, by stream and name.
    """

    at: float
    last_seqs: Mapping[str, int]
    backlogs: Mapping[tuple[str, str], int]


class FigureCache:
    """Asks Postgres for figures, at most about once a second however many pages are open."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._figures = Renewed(self._ask, _SECONDS_FRESH)
        self._services = Renewed(self._ask_services, _SECONDS_SERVICES_FRESH)
        self._samples: deque[Sample] = deque(maxlen=_MOST_SAMPLES)
        self._examining = asyncio.Lock()
        self._examination: asyncio.Task[None] | None = None
        self._findings: list[Finding] = []
        self._findings_at = -_SECONDS_OF_DOCTOR
        self._charts: dict[str, tuple[float, list[int]]] = {}

    def forget(self) -> None:
        """Ask again for the next page, since something was changed here."""
        self._figures.forget()
        self._services.forget()
        self._charts.clear()

    async def latest(self) -> Figures:
        """Figures that are about a second old, or a few where asking takes long."""
        return await self._figures.latest()

    async def services(self) -> Services:
        """Sources, endpoints and schedules, as they were a few seconds ago."""
        return await self._services.latest()

    async def _ask(self) -> Figures:
        bus, begun = self._connection.bus, time.monotonic()
        found = Figures(await bus.overview(), await bus.consumer_overview(), await bus.list_pipelines())
        self._sample(begun, found)
        return found

    async def _ask_services(self) -> Services:
        bus = self._connection.bus
        return Services(
            await bus.sources.list_all(),
            await bus.webhook_sources.list_all(),
            await bus.list_pushes(),
            await bus.schedules.list_all(),
        )

    def rates(self, stream: str) -> list[float]:
        """Messages published per second between the last looks at it, the oldest first."""
        found: list[float] = []
        for before, after in pairwise(self._samples):
            old, new = before.last_seqs.get(stream), after.last_seqs.get(stream)
            if old is not None and new is not None:
                found.append(max(0, new - old) / (after.at - before.at))
        return found

    def backlogs(self, stream: str, consumer: str) -> list[tuple[float, int]]:
        """The backlog of a consumer at the last looks at it, the oldest first: how many seconds ago, and how many."""
        now = time.monotonic()
        place = (stream, consumer)
        return [(now - each.at, each.backlogs[place]) for each in self._samples if place in each.backlogs]

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

    def _sample(self, now: float, found: Figures) -> None:
        if self._samples and now - self._samples[-1].at < _SECONDS_BETWEEN_SAMPLES:
            return
        if self._samples and now - self._samples[-1].at > 10 * _SECONDS_BETWEEN_SAMPLES:
            # Nobody has looked for a while: a rate over the gap would be no rate of now.
            self._samples.clear()
        last_seqs = {each.name: each.last_seq for each in found.streams}
        self._samples.append(
            Sample(now, last_seqs, {(each.stream, each.name): each.backlog for each in found.consumers})
        )

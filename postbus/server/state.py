"""The state that all requests of a process share."""

from __future__ import annotations

import asyncio
import contextlib

from postbus.http.guard import Guard as PushGuard
from postbus.server.auth import Guard
from postbus.server.coalescer import Coalescer
from postbus.server.connection import Connection
from postbus.server.deadlines import Deadlines
from postbus.server.long_poll import LongPolls
from postbus.server.maintenance import Maintenance
from postbus.server.metrics import Metrics
from postbus.server.name_cache import NameCache
from postbus.server.pushing import Pushing
from postbus.server.receiving import Receiving
from postbus.server.settings import Settings
from postbus.server.source_process import SourceProcess

# How long to wait for Postgres at the start, so that the first request succeeds. Then the server starts in any case.
_FIRST_ATTEMPT_SECONDS = 5.0


class AppState:
    """Shared state, which starts and stops with the server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.connection = Connection(settings)
        self.names = NameCache(self.connection)
        self.guard = Guard(self.connection, is_open=settings.is_open)
        self.deadlines = Deadlines(settings.request_timeout)
        self.coalescer = Coalescer(self.connection, coalesce=settings.coalesce, seconds=settings.request_timeout)
        self.long_polls = LongPolls()
        self.metrics = Metrics(self.connection)
        self.push_guard = PushGuard(settings.push_allowed, allow_http=settings.push_allow_http)
        self.receiving = Receiving(settings, self.connection, self.coalescer, self.metrics)
        self.stopping = False
        self._pushing = Pushing(settings, self.push_guard) if settings.push else None
        self._maintenance = Maintenance(self.connection, settings.services_lock) if settings.services else None
        self._sources = SourceProcess(self.connection, settings) if settings.services else None

    async def start(self) -> None:
        self.connection.open()
        self.deadlines.start()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.connection.attempted.wait(), _FIRST_ATTEMPT_SECONDS)
        if self._maintenance is not None:
            self._maintenance.start()
        if self._pushing is not None:
            self._pushing.start()
        if self._sources is not None:
            self._sources.start()

    def begin_stop(self) -> None:
        """End all long polls, which answer with what they have."""
        self.stopping = True
        self.long_polls.stop()

    async def stop(self) -> None:
        self.begin_stop()
        if self._sources is not None:
            await self._sources.stop()
        if self._maintenance is not None:
            await self._maintenance.stop()
        if self._pushing is not None:
            await self._pushing.stop()
        self.deadlines.stop()
        self.metrics.stop()
        await self.connection.close()

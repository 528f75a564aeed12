"""Sends for push consumers in a process of the server, by connections of its own: slow endpoints take none from requests."""

from __future__ import annotations

import asyncio
import contextlib

import postbus
from postbus.http.guard import Guard
from postbus.model.errors import Error
from postbus.push.service import PushService
from postbus.server import logs
from postbus.server.settings import Settings

_POOL_SIZE = 5
_RETRY_SECONDS = 1.0


class Pushing:
    """The push service of a server, once Postgres can be reached."""

    def __init__(self, settings: Settings, guard: Guard) -> None:
        self._settings = settings
        self._guard = guard
        self._opening: asyncio.Task[None] | None = None
        self._bus: postbus.AsyncBus | None = None
        self._service: PushService | None = None

    def start(self) -> None:
        self._opening = asyncio.create_task(self._open())

    async def stop(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._opening
        if self._service is not None:
            await self._service.stop()
        if self._bus is not None:
            await self._bus.close()

    async def _open(self) -> None:
        problem = None
        while True:
            try:
                # Connections are opened when they are needed.
                self._bus = await postbus.connect_async(
                    self._settings.url,
                    pool_size=_POOL_SIZE,
                    connect_timeout=self._settings.connect_timeout,
                    upkeep=False,
                )
                break
            except Error as error:
                if error.message != problem:
                    logs.note("nothing is pushed yet", reason=error.message)
                problem = error.message
                await asyncio.sleep(_RETRY_SECONDS)
        self._service = PushService(self._bus, self._guard)
        self._service.start()

"""The connection to Postgres, which may be down when the server starts."""

from __future__ import annotations

import asyncio
import contextlib
import copy

import postbus
from postbus.model.errors import Error, Unavailable
from postbus.server import logs
from postbus.server.deadlines import took_too_long
from postbus.server.settings import Settings

_RETRY_SECONDS = 1.0


class Connection:
    """The bus, once Postgres can be reached. Until then each request gets the reason as an error."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._bus: postbus.AsyncBus | None = None
        self._problem: Error = Unavailable("the server is starting")
        self._opening: asyncio.Task[None] | None = None
        self.attempted = asyncio.Event()
        """Set after the first attempt, whether it succeeded or not."""

    @property
    def bus(self) -> postbus.AsyncBus:
        """The bus.

        Raises:
            postbus.Error: Postgres cannot be used; the error says why.
        """
        if self._bus is None:
            raise copy.copy(self._problem)
        return self._bus

    def open(self) -> None:
        self._opening = asyncio.create_task(self._keep_trying())

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._opening
        if self._bus is not None:
            await self._bus.close()

    async def why_not_ready(self) -> Error | None:
        """Query Postgres to find out why requests cannot be served; None if they can."""
        try:
            async with asyncio.timeout(self._settings.connect_timeout):
                await self.bus.check()
        except TimeoutError:
            return took_too_long(self._settings.connect_timeout)
        except Error as error:
            return error
        return None

    async def _keep_trying(self) -> None:
        while self._bus is None:
            try:
                await self._connect()
            except Error as error:
                self._problem = error
            except Exception as error:
                # Unexpected, but a server that stopped trying would never report it, nor recover.
                logs.failure("", error)
                self._problem = Unavailable("the server cannot use Postgres", "its log says why")
            self.attempted.set()
            if self._bus is None:
                await asyncio.sleep(_RETRY_SECONDS)

    async def _connect(self) -> None:
        settings = self._settings
        self._bus = await postbus.connect_async(
            settings.url, pool_size=settings.pool_size, connect_timeout=settings.connect_timeout, upkeep=False
        )

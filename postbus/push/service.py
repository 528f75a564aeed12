"""Sends for all endpoints of a bus. Any number of processes do so at once, and need not know of each other."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

import postbus
from postbus.http.guard import Guard
from postbus.http.outgoing import Outgoing
from postbus.model.errors import Error
from postbus.operations import push as operations
from postbus.push.budget import Budget
from postbus.push.sender import Sender
from postbus.transport._async.postgres import AsyncPostgresTransport

_log = logging.getLogger("postbus.push")

_LOOK_SECONDS: Final = 1.0


class PushService:
    """Sends for all endpoints of a bus while it runs.

    Args:
        bus: A bus over Postgres. Its connections are used for nothing that takes long.
        guard: Decides where requests may be sent.
        http: Sends requests instead.
        most_bytes: About how much data of messages it holds at most.
    """

    def __init__(
        self, bus: postbus.AsyncBus, guard: Guard, *, http: Outgoing | None = None, most_bytes: int | None = None
    ) -> None:
        self._bus = bus
        self._http = http or Outgoing(guard)
        self._senders: dict[int, Sender] = {}
        self._budget = Budget() if most_bytes is None else Budget(most_bytes)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self, *, grace: float = 8.0) -> None:
        """Finish the requests that are on their way; give back what was not sent."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await asyncio.gather(*(sender.stop(grace) for sender in self._senders.values()))
        await self._http.close()

    async def _run(self) -> None:
        problem = None
        while True:
            try:
                await self._turn()
                problem = None
            except Error as error:
                if error.message != problem:
                    _log.warning("endpoints cannot be looked up: %s", error.message)
                problem = error.message
            except Exception:
                # Unexpected, but a service that stopped would never report it, nor recover.
                _log.exception("endpoints cannot be looked up")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _turn(self) -> None:
        transport = self._bus._transport
        if not isinstance(transport, AsyncPostgresTransport):
            raise postbus.InvalidInput("pushing needs Postgres itself, not a server over HTTP")
        found = {each.consumer_id: each for each in await transport.run(operations.targets())}
        for consumer_id, target in found.items():
            if consumer_id not in self._senders:
                self._senders[consumer_id] = Sender(transport, self._http, target, self._budget)
            self._senders[consumer_id].note(target)
        for consumer_id in self._senders.keys() - found.keys():
            await self._senders.pop(consumer_id).stop(0)

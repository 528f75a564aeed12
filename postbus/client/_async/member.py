"""One worker of a group, whose partitions are shared out among the workers that are alive."""

from __future__ import annotations

import time
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

from postbus.model.duration import Duration, as_seconds
from postbus.model.group import Claim, Claims
from postbus.model.message import Message
from postbus.operations import groups as operations
from postbus.transport._async.base import AsyncTransport

if TYPE_CHECKING:
    from postbus.db._async.database import Connection

# How many heartbeats fit into a session.
_HEARTBEATS: Final = 3


class AsyncClaiming(Protocol):
    """What a member needs of its group."""

    stream: str
    name: str

    async def claim(
        self,
        max_messages: int = 100,
        *,
        lease: Duration | None = None,
        wait: Duration = 0,
        worker: str | None = None,
    ) -> list[Claim]: ...

    async def fetch(self, claims: Claims) -> list[Message]: ...

    async def commit(
        self, claims: Claims, *, to_seq: int | None = None, connection: Connection | None = None
    ) -> int: ...


class AsyncMember:
    """One worker of a group; get one from `group.join`.

    It says that it is alive whenever it claims or commits; a handler that takes long calls `heartbeat` in between.

    Attributes:
        worker: Its name.
        partitions: Those that are its own, as far as it knows.
    """

    def __init__(self, group: AsyncClaiming, transport: AsyncTransport, worker: str, session: timedelta) -> None:
        self._group = group
        self._transport = transport
        self._session = session
        self._next_beat = 0.0
        self.worker = worker
        self.partitions: tuple[int, ...] = ()

    async def __aenter__(self) -> Self:
        await self.heartbeat()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave()

    async def leave(self) -> None:
        """Be a worker no more: the others take its partitions when they are heard of next."""
        await self._transport.run(operations.leave(self._group.stream, self._group.name, self.worker))
        self.partitions = ()

    async def heartbeat(self) -> tuple[int, ...]:
        """Say that it is alive, and find out which partitions are its own now."""
        call = operations.join(self._group.stream, self._group.name, self.worker, self._session)
        self.partitions = await self._transport.run(call)
        self._next_beat = time.monotonic() + self._session.total_seconds() / _HEARTBEATS
        return self.partitions

    async def claim(self, max_messages: int = 100, *, wait: float | timedelta = 0) -> list[Claim]:
        """Claim the next messages of its partitions, for as long as its session lasts.

        While it waits, it says that it is alive.
        """
        end = time.monotonic() + (as_seconds(wait) or 0.0)
        while True:
            await self._beat()
            left = max(0.0, end - time.monotonic())
            pause = min(left, max(0.0, self._next_beat - time.monotonic()))
            claims = await self._group.claim(max_messages, lease=self._session, wait=pause, worker=self.worker)
            if claims or time.monotonic() >= end:
                return claims

    async def fetch(self, claims: Claims) -> list[Message]:
        """The messages of what it has claimed."""
        return await self._group.fetch(claims)

    async def commit(self, claims: Claims, *, to_seq: int | None = None, connection: Connection | None = None) -> int:
        """Finish what it has claimed, as `group.commit` does."""
        committed = await self._group.commit(claims, to_seq=to_seq, connection=connection)
        await self._beat()
        return committed

    async def _beat(self) -> None:
        if time.monotonic() >= self._next_beat:
            await self.heartbeat()

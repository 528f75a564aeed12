# Generated from postbus/client/_async/member.py by `make generate`; edit that file.

"""One worker of a group. The group's partitions are divided among its live workers."""

from __future__ import annotations

import time
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

from postbus.model.duration import Duration, as_seconds
from postbus.model.group import Claim, Claims
from postbus.model.message import Message
from postbus.operations import groups as operations
from postbus.transport._sync.base import Transport

if TYPE_CHECKING:
    from postbus.db.own_connections import OwnConnection

# How many heartbeats fit into a session.
_HEARTBEATS: Final = 3


class Claiming(Protocol):
    """The part of a group that a member uses."""

    stream: str
    name: str

    def claim(
        self,
        max_messages: int = 100,
        *,
        lease: Duration | None = None,
        wait: Duration = 0,
        worker: str | None = None,
    ) -> list[Claim]: ...

    def fetch(self, claims: Claims) -> list[Message]: ...

    def commit(self, claims: Claims, *, to_seq: int | None = None, connection: OwnConnection | None = None) -> int: ...


class Member:
    """One worker of a group; get one from `group.join`.

    Each claim and commit keeps it alive. A slow handler should call `heartbeat` in between.

    Attributes:
        worker: Its name.
        partitions: Its partitions, as of its last call.
    """

    def __init__(self, group: Claiming, transport: Transport, worker: str, session: timedelta) -> None:
        self._group = group
        self._transport = transport
        self._session = session
        self._next_beat = 0.0
        self.worker = worker
        self.partitions: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        self.heartbeat()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Leave the group. The other workers take its partitions at their next call."""
        self._transport.run(operations.leave(self._group.stream, self._group.name, self.worker))
        self.partitions = ()

    def heartbeat(self) -> tuple[int, ...]:
        """Keep the membership alive, and update its partitions."""
        call = operations.join(self._group.stream, self._group.name, self.worker, self._session)
        self.partitions = self._transport.run(call)
        self._next_beat = time.monotonic() + self._session.total_seconds() / _HEARTBEATS
        return self.partitions

    def claim(self, max_messages: int = 100, *, wait: float | timedelta = 0) -> list[Claim]:
        """Claim the next messages of its partitions, for as long as its session lasts.

        While it waits, it keeps its membership alive.
        """
        end = time.monotonic() + (as_seconds(wait) or 0.0)
        while True:
            self._beat()
            left = max(0.0, end - time.monotonic())
            pause = min(left, max(0.0, self._next_beat - time.monotonic()))
            claims = self._group.claim(max_messages, lease=self._session, wait=pause, worker=self.worker)
            if claims or time.monotonic() >= end:
                return claims

    def fetch(self, claims: Claims) -> list[Message]:
        """The messages of its claimed ranges."""
        return self._group.fetch(claims)

    def commit(self, claims: Claims, *, to_seq: int | None = None, connection: OwnConnection | None = None) -> int:
        """Commit its claimed ranges, as `group.commit` does."""
        committed = self._group.commit(claims, to_seq=to_seq, connection=connection)
        self._beat()
        return committed

    def _beat(self) -> None:
        if time.monotonic() >= self._next_beat:
            self.heartbeat()

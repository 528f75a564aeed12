"""What a worker needs of a consumer."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from postbus.model.consumer import ConsumerInfo, ConsumerStats
from postbus.model.delivery import Batch, Deliveries
from postbus.model.duration import Duration
from postbus.transport._async.base import AsyncTransport

if TYPE_CHECKING:
    from postbus.db._async.database import Connection


class AsyncMessageSource(Protocol):
    """A consumer, as a worker sees it."""

    stream: str
    name: str

    @property
    def transport(self) -> AsyncTransport: ...

    async def info(self) -> ConsumerInfo: ...

    async def stats(self) -> ConsumerStats: ...

    async def receive(
        self,
        max_messages: int = 1,
        *,
        ack: Deliveries | None = None,
        wait: Duration = 0,
        ack_wait: Duration | None = None,
    ) -> Batch: ...

    async def ack(self, deliveries: Deliveries, *, connection: Connection | None = None) -> int: ...

    async def nack(
        self,
        deliveries: Deliveries,
        *,
        delay: Duration | None = None,
        reason: str | None = None,
        untried: bool = False,
    ) -> int: ...

    async def defer(
        self,
        deliveries: Deliveries,
        *,
        delay: Duration | None = None,
        until: datetime | None = None,
        state: Any = ...,
        connection: Connection | None = None,
    ) -> int: ...

    async def extend(self, deliveries: Deliveries, *, ack_wait: Duration | None = None) -> int: ...

    async def terminate(self, deliveries: Deliveries, *, reason: str | None = None) -> int: ...

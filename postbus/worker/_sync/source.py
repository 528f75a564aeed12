# Generated from postbus/worker/_async/source.py by `make generate`; edit that file.

"""What a worker needs of a consumer."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from postbus.model.consumer import ConsumerInfo, ConsumerStats
from postbus.model.delivery import Batch, Deliveries
from postbus.model.duration import Duration
from postbus.transport._sync.base import Transport

if TYPE_CHECKING:
    from postbus.db._sync.database import Connection


class MessageSource(Protocol):
    """A consumer, as a worker sees it."""

    stream: str
    name: str

    @property
    def transport(self) -> Transport: ...

    def info(self) -> ConsumerInfo: ...

    def stats(self) -> ConsumerStats: ...

    def receive(
        self,
        max_messages: int = 1,
        *,
        ack: Deliveries | None = None,
        wait: Duration = 0,
        ack_wait: Duration | None = None,
    ) -> Batch: ...

    def ack(self, deliveries: Deliveries, *, connection: Connection | None = None) -> int: ...

    def nack(
        self,
        deliveries: Deliveries,
        *,
        delay: Duration | None = None,
        reason: str | None = None,
        untried: bool = False,
    ) -> int: ...

    def defer(
        self,
        deliveries: Deliveries,
        *,
        delay: Duration | None = None,
        until: datetime | None = None,
        state: Any = ...,
        connection: Connection | None = None,
    ) -> int: ...

    def extend(self, deliveries: Deliveries, *, ack_wait: Duration | None = None) -> int: ...

    def terminate(self, deliveries: Deliveries, *, reason: str | None = None) -> int: ...

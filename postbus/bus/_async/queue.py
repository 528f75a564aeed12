"""A queue: a stream whose messages go when they are acked, and its one consumer of the same name, in one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from postbus.bus._async.consumer import AsyncConsumer

if TYPE_CHECKING:
    from postbus.bus._async.bus import AsyncBus
    from postbus.db._async.database import Connection
    from postbus.model.message import Message


class AsyncQueue(AsyncConsumer):
    """Publish, receive and ack in one object; get one from `bus.queue`. Everything that a consumer can do, a queue can."""

    def __init__(self, bus: AsyncBus, name: str) -> None:
        super().__init__(bus, name, name)

    async def publish(
        self,
        data: Any,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        ttl: float | timedelta | None = None,
        deliver_at: datetime | None = None,
        delay: float | timedelta | None = None,
        connection: Connection | None = None,
    ) -> int:
        """Put a message into the queue, as `bus.publish` does."""
        return await self._bus.publish(
            self.stream,
            data=data,
            key=key,
            headers=headers,
            ttl=ttl,
            deliver_at=deliver_at,
            delay=delay,
            connection=connection,
        )

    async def publish_many(
        self,
        messages: Iterable[Message],
        *,
        ttl: float | timedelta | None = None,
        deliver_at: datetime | None = None,
        delay: float | timedelta | None = None,
        connection: Connection | None = None,
    ) -> list[int]:
        """Put messages into the queue, all or none, as `bus.publish_many` does."""
        return await self._bus.publish_many(
            self.stream, messages, ttl=ttl, deliver_at=deliver_at, delay=delay, connection=connection
        )

    async def drop(self) -> None:
        """Remove the queue with all its messages."""
        await self._bus.drop_stream(self.stream)

"""A queue: a stream that removes messages when they are acked, and its one consumer of the same name, in one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from postbus.client._async.consumer import AsyncConsumer
from postbus.client._async.publishing import AsyncPublishing
from postbus.client._async.streams import AsyncStreams
from postbus.transport._async.base import AsyncTransport

if TYPE_CHECKING:
    from postbus.db.own_connections import AsyncOwnConnection
    from postbus.model.message import Message, Seq


class AsyncQueue(AsyncConsumer):
    """Publish, receive and ack in one object; get one from `bus.queue`. A queue can do everything that a consumer can."""

    def __init__(self, transport: AsyncTransport, name: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(transport, name, name)
        self._publishing = AsyncPublishing(transport, headers=headers)

    async def publish(
        self,
        data: Any,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        ttl: float | timedelta | None = None,
        deliver_at: datetime | None = None,
        delay: float | timedelta | None = None,
        priority: int = 4,
        connection: AsyncOwnConnection | None = None,
    ) -> Seq:
        """Publish a message to the queue, as `bus.publish` does."""
        return await self._publishing.publish(
            self.stream,
            data=data,
            key=key,
            headers=headers,
            ttl=ttl,
            deliver_at=deliver_at,
            delay=delay,
            priority=priority,
            connection=connection,
        )

    async def publish_many(
        self,
        messages: Iterable[Message],
        *,
        ttl: float | timedelta | None = None,
        deliver_at: datetime | None = None,
        delay: float | timedelta | None = None,
        connection: AsyncOwnConnection | None = None,
    ) -> list[Seq]:
        """Publish messages to the queue, all or none, as `bus.publish_many` does."""
        return await self._publishing.publish_many(
            self.stream, messages, ttl=ttl, deliver_at=deliver_at, delay=delay, connection=connection
        )

    async def drop(self) -> None:
        """Remove the queue with all its messages."""
        await AsyncStreams(self._transport).drop_stream(self.stream)

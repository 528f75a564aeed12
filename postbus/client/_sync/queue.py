# Generated from postbus/client/_async/queue.py by `make generate`; edit that file.

"""A queue: a stream that removes messages when they are acked, and its one consumer of the same name, in one object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from postbus.client._sync.consumer import Consumer
from postbus.client._sync.publishing import Publishing
from postbus.client._sync.streams import Streams
from postbus.transport._sync.base import Transport

if TYPE_CHECKING:
    from postbus.db.own_connections import OwnConnection
    from postbus.model.message import Message, Seq


class Queue(Consumer):
    """Publish, receive and ack in one object; get one from `bus.queue`. A queue can do everything that a consumer can."""

    def __init__(self, transport: Transport, name: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(transport, name, name)
        self._publishing = Publishing(transport, headers=headers)

    def publish(
        self,
        data: Any,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        ttl: float | timedelta | None = None,
        deliver_at: datetime | None = None,
        delay: float | timedelta | None = None,
        priority: int = 4,
        connection: OwnConnection | None = None,
    ) -> Seq:
        """Publish a message to the queue, as `bus.publish` does."""
        return self._publishing.publish(
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

    def publish_many(
        self,
        messages: Iterable[Message],
        *,
        ttl: float | timedelta | None = None,
        deliver_at: datetime | None = None,
        delay: float | timedelta | None = None,
        connection: OwnConnection | None = None,
    ) -> list[Seq]:
        """Publish messages to the queue, all or none, as `bus.publish_many` does."""
        return self._publishing.publish_many(
            self.stream, messages, ttl=ttl, deliver_at=deliver_at, delay=delay, connection=connection
        )

    def drop(self) -> None:
        """Remove the queue with all its messages."""
        Streams(self._transport).drop_stream(self.stream)

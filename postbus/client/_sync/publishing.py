# Generated from postbus/client/_async/publishing.py by `make generate`; edit that file.

"""The part of a bus that publishes, now or at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from postbus import tracing
from postbus.client._sync.base import Client
from postbus.codec.parameters import as_messages
from postbus.model.errors import NotFound
from postbus.model.message import Message, Scheduled, Seq
from postbus.operations import messages as operations
from postbus.operations import streams
from postbus.transport._sync.base import Transport

if TYPE_CHECKING:
    from postbus.db.own_connections import OwnConnection


class Publishing(Client):
    """The part of a bus that publishes.

    Args:
        transport: Runs its operations.
        headers: Headers of each message that it publishes; those of the message itself win.
    """

    def __init__(self, transport: Transport, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(transport)
        self._headers = headers or None

    def publish(
        self,
        stream: str,
        *,
        data: Any,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        ttl: float | timedelta | None = None,
        deliver_at: datetime | None = None,
        delay: float | timedelta | None = None,
        dedup_id: str | None = None,
        priority: int = 4,
        connection: OwnConnection | None = None,
    ) -> Seq:
        """Publish one message. It is durable when this returns.

        Args:
            stream: The stream's name.
            data: Any JSON value in a json stream, a str in a text stream, bytes in a bytes stream.
            key: Dot-separated tokens that route and order the message; None puts it in any partition.
            headers: Strings by name.
            ttl: Its time to live from when it is published. A consumer that reaches it later skips it, or buries it.
            deliver_at: Publish it at this time. It gets its seq then.
            delay: The same, in seconds from now.
            dedup_id: An id. If a message with this id was published within the stream's dedup_window, this one is not published.
            priority: 0 to 9, higher first. A message of a higher level may overtake others, also those of its key.
            connection: Your own connection, of psycopg or of SQLAlchemy over psycopg: the message is published by its
                transaction, and not at all if that rolls back.

        Returns:
            The message's seq, an int that says whether it `is_duplicate`: with a `dedup_id`, or where a stream keeps one message
            per key and its data has not changed. With `deliver_at` or `delay`, the number under which it is scheduled.

        Raises:
            InvalidInput: The message is not valid; the error says why.
            NotFound: There is no such stream.
            TooLarge: The data is larger than the stream allows.
            ConnectionLost: The connection broke during the call: the message may or may not have been published.
        """
        message = Message(key=key, data=data, headers=self._with_own(headers), dedup_id=dedup_id, priority=priority)
        if not tracing.is_on():
            return self._transport.publish(stream, message, ttl, deliver_at, delay, connection)
        with tracing.publishing(stream, [message]) as (carrying,):
            return self._transport.publish(stream, carrying, ttl, deliver_at, delay, connection)

    def publish_many(
        self,
        stream: str,
        messages: Iterable[Message],
        *,
        ttl: float | timedelta | None = None,
        deliver_at: datetime | None = None,
        delay: float | timedelta | None = None,
        connection: OwnConnection | None = None,
    ) -> list[Seq]:
        """Publish up to 10,000 messages in order, all or none. They are durable when this returns.

        Args:
            stream: The stream's name.
            messages: The messages to publish; may be empty.
            ttl: Their time to live, as for `publish`.
            deliver_at: Publish them at this time.
            delay: The same, in seconds from now.
            connection: Your own connection, as for `publish`.

        Returns:
            The messages' seqs, in their order, each an int that says whether it `is_duplicate`; with `deliver_at` or `delay`, the
            numbers under which they are scheduled.

        Raises:
            InvalidInput: A message is not valid; the error gives its number, from 1, and says why.
            NotFound: There is no such stream.
            TooLarge: A message is larger than the stream allows, or the batch is too long.
            ConnectionLost: The connection broke during the call: either all messages or none were published.
        """
        batch = as_messages(messages)
        if self._headers is not None:
            batch = [replace(message, headers=self._with_own(message.headers)) for message in batch]
        if not tracing.is_on():
            return self._transport.publish_many(stream, batch, ttl, deliver_at, delay, connection)
        with tracing.publishing(stream, batch) as carrying:
            return self._transport.publish_many(stream, carrying, ttl, deliver_at, delay, connection)

    def _with_own(self, headers: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Headers of a message with those of the bus. What is no mapping is refused when it is encoded."""
        if self._headers is None or not (headers is None or isinstance(headers, Mapping)):
            return headers
        return {**self._headers, **(headers or {})}

    def delete_key(self, stream: str, key: str, *, connection: OwnConnection | None = None) -> int | None:
        """Delete a key in a stream with one message per key. Consumers get a message with the header `postbus-deleted`.

        Returns:
            The seq of that message; None if the key does not exist.
        """
        try:
            return self._transport.run(operations.delete_key(stream, key), connection)
        except NotFound:
            if connection is not None:
                raise
        self._transport.run(streams.info(stream))  # A server does not say whether the stream or the key is missing.
        return None

    def list_scheduled(
        self, stream: str, *, key_pattern: str | None = None, after: Scheduled | None = None, max_messages: int = 100
    ) -> list[Scheduled]:
        """The scheduled messages of a stream, earliest first.

        Args:
            stream: The stream's name.
            key_pattern: Only messages whose key matches.
            after: The last message of the previous page.
            max_messages: The largest number of results, 1 to 10,000.
        """
        call = operations.list_scheduled(stream, key_pattern=key_pattern, after=after, max_messages=max_messages)
        return self._transport.run(call)

    def cancel(self, stream: str, ids: int | Sequence[int], *, connection: OwnConnection | None = None) -> int:
        """Cancel scheduled messages.

        Returns:
            How many counted; messages that are already published do not count.
        """
        numbers = [ids] if isinstance(ids, int) else list(ids)
        return self._transport.run(operations.cancel(stream, numbers), connection) if numbers else 0

    def reschedule(
        self,
        stream: str,
        ids: int | Sequence[int],
        deliver_at: datetime,
        *,
        connection: OwnConnection | None = None,
    ) -> int:
        """Change the time of scheduled messages.

        Returns:
            How many counted; messages that are already published do not count.
        """
        numbers = [ids] if isinstance(ids, int) else list(ids)
        if not numbers:
            return 0
        return self._transport.run(operations.reschedule(stream, numbers, deliver_at), connection)

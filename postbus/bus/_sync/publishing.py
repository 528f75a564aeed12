# Generated from postbus/bus/_async/publishing.py by `make generate`; edit that file.

"""Publishing, now or at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from postbus import tracing
from postbus.bus._sync.base import BusBase
from postbus.codec import rows
from postbus.db import statements
from postbus.db._sync.database import Connection
from postbus.db.arrays import BigintArray
from postbus.model.errors import NotFound
from postbus.model.message import Message, Scheduled, Seq

# No connection of the caller's, no ttl, no time, no id: what a stream's own publisher can do.
_PLAIN: Final = (None, None, None, None, None)


class Publishing(BusBase):
    """The part of a bus that publishes."""

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
        connection: Connection | None = None,
    ) -> int:
        """Publish one message. It is durable when this returns.

        Args:
            stream: The stream's name.
            data: Any JSON value in a json stream, a str in a text stream, bytes in a bytes stream.
            key: Dot-separated tokens that route and order the message; None puts it in any partition.
            headers: Strings by name.
            ttl: How long it lives, from when it is published: a consumer that comes to it later skips it, or buries it.
            deliver_at: Keep it outside the stream until then. It gets its seq, and its place among others, at that time.
            delay: The same, in seconds from now.
            dedup_id: Names the message: if it was published within the stream's dedup_window, it is not published again.
            connection: A psycopg connection of yours: the message is published by its transaction, and not at all if
                that rolls back.

        Returns:
            The message's seq; with `deliver_at` or `delay`, the number under which it is scheduled. With a `dedup_id`, a
            `Seq`, which says whether it `is_duplicate`. Where a stream keeps one message per key and its data has not
            changed, the `Seq` of the version that stands.

        Raises:
            InvalidInput: The message is not allowed; the error says why.
            NotFound: There is no such stream.
            TooLarge: The data is larger than the stream allows.
            ConnectionLost: The connection broke on the way: the message may or may not have been published.
        """
        message = Message(key=key, data=data, headers=headers, dedup_id=dedup_id)
        if not tracing.is_on():
            return self._publish(stream, message, ttl, deliver_at, delay, connection)
        with tracing.publishing(stream, [message]) as (carrying,):
            return self._publish(stream, carrying, ttl, deliver_at, delay, connection)

    def publish_many(
        self,
        stream: str,
        messages: Iterable[Message],
        *,
        ttl: float | timedelta | None = None,
        deliver_at: datetime | None = None,
        delay: float | timedelta | None = None,
        connection: Connection | None = None,
    ) -> list[int]:
        """Publish up to 10,000 messages, all or none, in their order. They are durable when this returns.

        Args:
            stream: The stream's name.
            messages: What to publish; none is allowed and does nothing.
            ttl: How long they live, as for `publish`.
            deliver_at: Keep them outside the stream until then.
            delay: The same, in seconds from now.
            connection: A psycopg connection of yours, as for `publish`.

        Returns:
            The messages' seqs, in their order; with `deliver_at` or `delay`, the numbers under which they are scheduled. If
            a message has a `dedup_id`, or is not published because of its key, each is a `Seq`, which says whether it
            `is_duplicate`.

        Raises:
            InvalidInput: A message is not allowed; the error names its place, counted from 1, and says why.
            NotFound: There is no such stream.
            TooLarge: A message is larger than the stream allows, or the batch is too long.
            ConnectionLost: The connection broke on the way: all messages or none have been published.
        """
        batch = rows.as_messages(messages)
        if not tracing.is_on():
            return self._publish_many(stream, batch, ttl, deliver_at, delay, connection)
        with tracing.publishing(stream, batch) as carrying:
            return self._publish_many(stream, carrying, ttl, deliver_at, delay, connection)

    def delete_key(self, stream: str, key: str, *, connection: Connection | None = None) -> int | None:
        """Delete a key of a stream that keeps one message per key. Consumers get a message with the header `postbus-deleted`.

        Returns:
            The seq of that message; None when there is no such key.
        """
        found = self._database.rows(statements.DELETE_KEY, (stream, key), connection=connection)
        seq: int | None = found[0][0]
        return seq

    def list_scheduled(
        self, stream: str, *, key_pattern: str | None = None, after: Scheduled | None = None, max_messages: int = 100
    ) -> list[Scheduled]:
        """Messages of a stream that wait for their time, the next one first.

        Args:
            stream: The stream's name.
            key_pattern: Only messages whose key matches.
            after: The last one of the page before.
            max_messages: How many at most, 1 to 10,000.
        """
        place = (None, None) if after is None else (after.deliver_at, after.id)
        data_type = self._data_type(stream)
        found = self._database.rows(
            statements.LIST_SCHEDULED, (stream, key_pattern, *place, max_messages), repeatable=True
        )
        return [rows.scheduled(data_type, row) for row in found]

    def cancel(self, stream: str, ids: int | Sequence[int], *, connection: Connection | None = None) -> int:
        """Cancel scheduled messages.

        Returns:
            How many; one that has been published is not among them.
        """
        numbers = BigintArray([ids] if isinstance(ids, int) else ids)
        return int((self._database.rows(statements.CANCEL, (stream, numbers), connection=connection))[0][0])

    def reschedule(
        self, stream: str, ids: int | Sequence[int], deliver_at: datetime, *, connection: Connection | None = None
    ) -> int:
        """Give scheduled messages another time.

        Returns:
            How many; one that has been published is not among them.
        """
        numbers = BigintArray([ids] if isinstance(ids, int) else ids)
        found = self._database.rows(statements.RESCHEDULE, (stream, numbers, deliver_at), connection=connection)
        return int(found[0][0])

    def _publish(
        self,
        stream: str,
        message: Message,
        ttl: float | timedelta | None,
        deliver_at: datetime | None,
        delay: float | timedelta | None,
        connection: Connection | None,
    ) -> int:
        later = (rows.seconds(ttl), deliver_at, rows.seconds(delay))
        dedup_id = message.dedup_id
        known = self._streams.get(stream)
        if known is not None and known.own_id is not None and (connection, ttl, deliver_at, delay, dedup_id) == _PLAIN:
            try:
                found = self._database.rows(
                    statements.publish_to(known.own_id), rows.publisher_parameters(known.data_type, message)
                )
                return _answered(found[0][0], message)
            except NotFound:
                self._streams.pop(stream, None)  # It was dropped, and perhaps created again: look it up once more.
        _, found = self._with_data_type(
            stream,
            connection,
            statements.PUBLISH,
            lambda data_type: (*rows.publish_parameters(stream, data_type, message), *later, dedup_id),
        )
        return _answered(found[0][0], message)

    def _publish_many(
        self,
        stream: str,
        messages: Sequence[Message],
        ttl: float | timedelta | None,
        deliver_at: datetime | None,
        delay: float | timedelta | None,
        connection: Connection | None,
    ) -> list[int]:
        later = (rows.seconds(ttl), deliver_at, rows.seconds(delay))
        dedup_ids = rows.dedup_ids(messages)
        known = self._streams.get(stream)
        if known is not None and known.own_id is not None and (connection, ttl, deliver_at, delay, dedup_ids) == _PLAIN:
            try:
                found = self._database.rows(
                    statements.publish_many_to(known.own_id), rows.publisher_arrays(known.data_type, messages)
                )
                return _all_answered(found[0][0], messages)
            except NotFound:
                self._streams.pop(stream, None)
        _, found = self._with_data_type(
            stream,
            connection,
            statements.PUBLISH_MANY,
            lambda data_type: (
                *rows.publish_many_parameters(stream, data_type, messages),
                *later,
                dedup_ids,
            ),
        )
        return _all_answered(found[0][0], messages)


def _answered(answer: int, message: Message) -> int:
    return answer if answer > 0 and message.dedup_id is None else Seq.answered(answer)


def _all_answered(answers: list[int], messages: Sequence[Message]) -> list[int]:
    if any(message.dedup_id is not None for message in messages) or min(answers, default=1) <= 0:
        return [Seq.answered(answer) for answer in answers]
    return answers

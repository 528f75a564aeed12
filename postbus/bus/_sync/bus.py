# Generated from postbus/bus/_async/bus.py by `make generate`; edit that file.

"""The bus: streams, publishing and reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from postbus.bus import rows
from postbus.bus._sync.consumer import Consumer
from postbus.bus._sync.wakeups import Wakeups
from postbus.db import statements
from postbus.db._sync.database import Database
from postbus.db.embedded import EmbeddedServer
from postbus.model.consumer import Backoff, ConsumerInfo, Filter, OnDead, OnExpired, Ordering, Start
from postbus.model.errors import Conflict, NotFound
from postbus.model.message import Message, Page
from postbus.model.stream import DataType, HorizonHolder, StreamInfo

if TYPE_CHECKING:
    from postbus.db._sync.database import Connection


# Each is a prepared statement and a compiled function in the memory of every session.
_MAX_OWN_FUNCTIONS = 100


@dataclass(frozen=True, slots=True)
class KnownStream:
    """What a bus remembers of a stream: what it holds, and its id if its own functions are to be used."""

    data_type: DataType
    own_id: int | None


class Bus:
    """A connection to Postbus; get one from `postbus.connect`. Safe to share between threads.

    Every method raises `postbus.Unavailable` when Postgres cannot be reached.
    """

    def __init__(self, database: Database, *, server: EmbeddedServer | None = None) -> None:
        self._database = database
        self._server = server
        self._streams: dict[str, KnownStream] = {}
        self._wakeups = Wakeups(database)

    @property
    def url(self) -> str:
        """The URL in use."""
        return self._database.url

    def close(self) -> None:
        """Close all connections, and let go of the embedded Postgres."""
        self._database.close()
        if self._server is not None:
            self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def create_stream(
        self,
        stream: str,
        *,
        partitions: int = 8,
        data_type: DataType = "json",
        max_message_bytes: int = 8 * 1024 * 1024,
        segment_bytes: int = 256 * 1024 * 1024,
        segment_age: float | timedelta = timedelta(days=1),
        connection: Connection | None = None,
    ) -> None:
        """Create a stream.

        Args:
            stream: Its name: 1 to 63 letters, digits, "_" or "-".
            partitions: How many ways its keys are spread, 1 to 1024. Order is kept within a partition.
            data_type: What messages hold: json (any JSON value), text (str) or bytes.
            max_message_bytes: The largest data a message may have.
            segment_bytes: How large a segment of the log becomes before the next is begun.
            segment_age: How old a segment becomes before the next is begun. Space is freed by whole segments.
            connection: A connection of yours, to create it in your transaction.

        Raises:
            InvalidInput: A name or setting is not allowed.
            Conflict: The stream exists.
        """
        parameters = (stream, partitions, data_type, max_message_bytes, segment_bytes, rows.seconds(segment_age))
        self._database.rows(statements.CREATE_STREAM, parameters, connection=connection)

    def alter_stream(
        self,
        stream: str,
        *,
        max_message_bytes: int | None = None,
        segment_bytes: int | None = None,
        segment_age: float | timedelta | None = None,
        connection: Connection | None = None,
    ) -> None:
        """Change settings of a stream; None leaves one as it is.

        Raises:
            InvalidInput: A setting is not allowed.
            NotFound: There is no such stream.
        """
        parameters = (stream, max_message_bytes, segment_bytes, rows.seconds(segment_age))
        self._database.rows(statements.ALTER_STREAM, parameters, connection=connection)

    def drop_stream(self, stream: str, *, connection: Connection | None = None) -> None:
        """Remove a stream with all its messages. Waits for transactions that have published to it.

        Raises:
            NotFound: There is no such stream.
        """
        self._database.rows(statements.DROP_STREAM, (stream,), connection=connection)
        self._streams.pop(stream, None)

    def stream_info(self, stream: str) -> StreamInfo:
        """A stream's settings and size.

        Raises:
            NotFound: There is no such stream.
        """
        found = self._database.rows(statements.STREAM_INFO, (stream,), repeatable=True)
        return rows.stream_info(found[0])

    def list_streams(self) -> list[StreamInfo]:
        """All streams, in order of their names."""
        streams: list[StreamInfo] = []
        last_name = ""
        while found := self._database.rows(statements.LIST_STREAMS, (last_name,), repeatable=True):
            streams.extend(rows.stream_info(row) for row in found)
            last_name = streams[-1].name
        return streams

    def publish(
        self,
        stream: str,
        *,
        data: Any,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        connection: Connection | None = None,
    ) -> int:
        """Publish one message. It is durable when this returns.

        Args:
            stream: The stream's name.
            data: Any JSON value in a json stream, a str in a text stream, bytes in a bytes stream.
            key: Dot-separated tokens that route and order the message; None puts it in any partition.
            headers: Strings by name.
            connection: A psycopg connection of yours: the message is published by its transaction, and not at all if
                that rolls back.

        Returns:
            The message's seq.

        Raises:
            InvalidInput: The message is not allowed; the error says why.
            NotFound: There is no such stream.
            TooLarge: The data is larger than the stream allows.
            ConnectionLost: The connection broke on the way: the message may or may not have been published.
        """
        message = Message(key=key, data=data, headers=headers)
        known = self._streams.get(stream)
        if known is not None and known.own_id is not None and connection is None:
            try:
                found = self._database.rows(
                    statements.publish_to(known.own_id), rows.publisher_parameters(known.data_type, message)
                )
                return int(found[0][0])
            except NotFound:
                self._streams.pop(stream, None)  # It was dropped, and perhaps created again: look it up once more.
        _, found = self._with_data_type(
            stream,
            connection,
            statements.PUBLISH,
            lambda data_type: rows.publish_parameters(stream, data_type, message),
        )
        return int(found[0][0])

    def publish_many(
        self, stream: str, messages: Iterable[Message], *, connection: Connection | None = None
    ) -> list[int]:
        """Publish up to 10,000 messages, all or none, in their order. They are durable when this returns.

        Args:
            stream: The stream's name.
            messages: What to publish; none is allowed and does nothing.
            connection: A psycopg connection of yours, as for `publish`.

        Returns:
            The messages' seqs, in their order.

        Raises:
            InvalidInput: A message is not allowed; the error names its place, counted from 1, and says why.
            NotFound: There is no such stream.
            TooLarge: A message is larger than the stream allows, or the batch is too long.
            ConnectionLost: The connection broke on the way: all messages or none have been published.
        """
        batch = list(messages)
        _, found = self._with_data_type(
            stream,
            connection,
            statements.PUBLISH_MANY,
            lambda data_type: rows.publish_many_parameters(stream, data_type, batch),
        )
        seqs: list[int] = found[0][0]
        return seqs

    def read(
        self,
        stream: str,
        *,
        from_seq: int | None = None,
        to_seq: int | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        key: str | None = None,
        key_pattern: str | None = None,
        partition: int | None = None,
        max_messages: int = 100,
        backwards: bool = False,
        resume: str | None = None,
    ) -> Page:
        """A page of a stream's messages in order of seq, or backwards. Reading changes nothing.

        The work of one page is bounded, however long the stream or rare the key; `scan` goes through all pages.

        Args:
            stream: The stream's name.
            from_seq: The first seq, inclusive.
            to_seq: The last seq, inclusive.
            from_time: The earliest `published_at`, inclusive.
            to_time: The latest `published_at`, exclusive.
            key: Only messages with this key.
            key_pattern: Only messages whose key matches: "*" stands for one token, ">" at the end for one or more.
            partition: Only messages of this partition.
            max_messages: How many messages a page has at most, 1 to 10,000.
            backwards: From the newest to the oldest.
            resume: The `resume` of the page before this one.

        Raises:
            InvalidInput: An argument is not allowed.
            NotFound: There is no such stream.
        """

        def parameters(data_type: DataType) -> tuple[Any, ...]:
            bounds = (from_seq, to_seq, from_time, to_time, key, key_pattern, partition)
            return (stream, *bounds, max_messages, backwards, resume, data_type)

        data_type, found = self._with_data_type(stream, None, statements.READ, parameters, repeatable=True)
        return rows.page(data_type, found)

    def scan(
        self,
        stream: str,
        *,
        from_seq: int | None = None,
        to_seq: int | None = None,
        from_time: datetime | None = None,
        to_time: datetime | None = None,
        key: str | None = None,
        key_pattern: str | None = None,
        partition: int | None = None,
        page_size: int = 1000,
        backwards: bool = False,
    ) -> Iterator[Message]:
        """Every message that `read` would find, page by page, up to the end of the stream as it then is."""
        resume: str | None = None
        while True:
            page = self.read(
                stream,
                from_seq=from_seq,
                to_seq=to_seq,
                from_time=from_time,
                to_time=to_time,
                key=key,
                key_pattern=key_pattern,
                partition=partition,
                max_messages=page_size,
                backwards=backwards,
                resume=resume,
            )
            for message in page:
                yield message
            if page.resume is None:
                return
            resume = page.resume

    def create_consumer(
        self,
        stream: str,
        consumer: str,
        *,
        order: Ordering = "key",
        ack_wait: float | timedelta = 30,
        max_ack_pending: int = 10_000,
        max_deliver: int | None = None,
        backoff: Backoff = (),
        retain_dead: float | timedelta | None = None,
        max_per_key: int | None = None,
        max_waiting: int = 1000,
        on_dead: OnDead = "continue",
        filter: Filter | None = None,
        on_expired: OnExpired = "skip",
        start: Start | None = None,
        from_seq: int | None = None,
        from_time: datetime | None = None,
        connection: Connection | None = None,
    ) -> Consumer:
        """Create a consumer of a stream. It costs publishers nothing.

        Args:
            stream: The stream's name.
            consumer: Its own name: 1 to 63 letters, digits, "_" or "-".
            order: key: messages of a key in order, and one that fails holds its key. none: any message that is not in flight.
                partition: one batch of a partition at a time, and a message that fails holds its partition.
            ack_wait: How long a delivery is leased before somebody else gets it.
            max_ack_pending: How many messages may be in flight.
            max_deliver: How many deliveries before a message becomes a dead letter; None for ever.
            backoff: How long a message waits after its first, second, … failure (the last repeats), or an `Exponential`.
            retain_dead: How long dead letters are kept; None for ever.
            max_per_key: In order "key", how many messages of a key a batch may hold; None for any number.
            max_waiting: In order "key", how many messages may be parked behind others of their key before reading ahead stops.
            on_dead: In order "key", whether a dead letter lets its key go on ("continue") or holds it ("hold").
            filter: Which messages it wants; the others are skipped.
            on_expired: Whether a message whose time to live is over is skipped ("skip") or becomes a dead letter ("bury").
            start: "earliest", which is the default, or "latest".
            from_seq: Start with this message.
            from_time: Start with what was published since.
            connection: A connection of yours, to create it in your transaction.

        Raises:
            InvalidInput: A name or setting is not allowed; the error names the range.
            NotFound: There is no such stream.
            Conflict: The consumer exists.
        """
        self._database.rows(
            statements.CREATE_CONSUMER,
            (
                stream,
                consumer,
                order,
                rows.seconds(ack_wait),
                max_ack_pending,
                max_deliver,
                *rows.backoff_parameters(backoff),
                rows.seconds(retain_dead),
                max_per_key,
                max_waiting,
                on_dead,
                *rows.filter_parameters(filter),
                on_expired,
                start,
                from_seq,
                from_time,
            ),
            connection=connection,
        )
        return self.consumer(stream, consumer)

    def consumer(self, stream: str, consumer: str) -> Consumer:
        """A consumer that exists; its first use says if it does not."""
        return Consumer(self, stream, consumer)

    def list_consumers(self, stream: str) -> list[ConsumerInfo]:
        """The consumers of a stream, by name."""
        found = self._database.rows(statements.LIST_CONSUMERS, (stream,), repeatable=True)
        return [rows.consumer_info(row) for row in found]

    def sweep(self, stream: str | None = None) -> int:
        """Redeliver what has expired or come due, for the consumers of a stream or of all.

        Returns:
            How many messages became available.
        """
        found = self._database.rows(statements.SWEEP, (stream,))
        return int(found[0][0])

    def purge(
        self,
        stream: str,
        *,
        before_seq: int | None = None,
        before_time: datetime | None = None,
        everything: bool = False,
    ) -> int:
        """Remove the messages below a seq, or published before a time, or everything that is complete now.

        They are gone for readers at once; maintenance frees their space.

        Returns:
            The stream's new start: messages below this seq are gone.

        Raises:
            InvalidInput: Not exactly one of the three was given.
        """
        found = self._database.rows(statements.PURGE, (stream, before_seq, before_time, everything))
        start: int = found[0][0]
        return start

    def horizon(self, stream: str) -> int:
        """The seq up to which a stream may be read: no publishing transaction at or below it is still open."""
        found = self._database.rows(statements.HORIZON, (stream,), repeatable=True)
        horizon: int = found[0][0]
        return horizon

    def horizon_holders(self, stream: str) -> list[HorizonHolder]:
        """The open transactions that keep readers of a stream from going on, the furthest back first."""
        found = self._database.rows(statements.HORIZON_HOLDERS, (stream,), repeatable=True)
        return [rows.horizon_holder(row) for row in found]

    def maintain(self, stream: str | None = None) -> int:
        """Do what is due on the logs of all streams, or of one: begin, seal and drop segments.

        Returns:
            How many steps were taken.
        """
        step_count = 0
        while found := (self._database.rows(statements.MAINTAIN, (stream,)))[0][0]:
            step_count += found
        return step_count

    def _with_data_type(
        self,
        stream: str,
        connection: Connection | None,
        statement: str,
        parameters: Callable[[DataType], tuple[Any, ...]],
        *,
        repeatable: bool = False,
    ) -> tuple[DataType, list[rows.Row]]:
        """Run a statement whose parameters depend on what the stream holds.

        That is asked once for each stream. The statement names it, so that a stream dropped and created with another type
        is noticed by Postgres before anything is done; then it is asked again.
        """
        known = self._streams.get(stream)
        if known is not None:
            try:
                return known.data_type, self._database.rows(
                    statement, parameters(known.data_type), connection=connection, repeatable=repeatable
                )
            except Conflict:
                self._streams.pop(stream, None)
                if connection is not None:
                    raise  # The caller's transaction has failed; only the caller can repeat it.
        known = self._learn(stream, connection)
        return known.data_type, self._database.rows(
            statement, parameters(known.data_type), connection=connection, repeatable=repeatable
        )

    def _data_type(self, stream: str) -> DataType:
        return (self._streams.get(stream) or self._learn(stream, None)).data_type

    def _learn(self, stream: str, connection: Connection | None) -> KnownStream:
        ((stream_id, data_type),) = self._database.rows(
            statements.STREAM, (stream,), connection=connection, repeatable=True
        )
        known = KnownStream(data_type, stream_id if len(self._streams) < _MAX_OWN_FUNCTIONS else None)
        if connection is None:
            # In the caller's transaction the stream may be one that never comes to be.
            self._streams[stream] = known
        return known

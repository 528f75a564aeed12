# Generated from postbus/bus/_async/bus.py by `make generate`; edit that file.

"""A bus: streams, publishing, reading and consumers, on a pool of connections to one Postgres."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from postbus.bus._sync.consumer import Consumer
from postbus.bus._sync.group import Group
from postbus.bus._sync.publishing import Publishing
from postbus.bus._sync.queue import Queue
from postbus.bus._sync.reading import Reading
from postbus.bus._sync.streams import Streams
from postbus.bus._sync.upkeep import Upkeep
from postbus.codec import rows
from postbus.db import statements
from postbus.db._sync.database import Connection, Database
from postbus.db._sync.transactions import Transactions
from postbus.db.embedded import EmbeddedServer
from postbus.model.consumer import Backoff, ConsumerInfo, Filter, OnDead, OnExpired, Ordering, Start
from postbus.model.stream import DataType


class Bus(Streams, Publishing, Reading):
    """A connection to Postbus; get one from `postbus.connect`. Safe to share between threads.

    Every method raises `postbus.Unavailable` when Postgres cannot be reached.
    """

    def __init__(self, database: Database, *, server: EmbeddedServer | None = None) -> None:
        super().__init__(database)
        self._server = server

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
        filter: Filter | str | None = None,
        on_expired: OnExpired = "skip",
        keep_unread: bool = False,
        expire_after: float | timedelta | None = None,
        keep_history: float | timedelta | None = None,
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
            filter: Which messages it wants, by key, headers or content; a string is a key pattern. The others are skipped.
            on_expired: Whether a message whose time to live is over is skipped ("skip") or becomes a dead letter ("bury").
            keep_unread: The stream keeps what this consumer has not finished, whatever its retention says.
            expire_after: It is removed when nobody has received from it for so long; None never.
            keep_history: For how long `history` knows what became of each delivery; None for not at all.
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
                keep_unread,
                rows.seconds(expire_after),
                rows.seconds(keep_history),
                start,
                from_seq,
                from_time,
            ),
            connection=connection,
        )
        return self.consumer(stream, consumer)

    def create_queue(
        self,
        name: str,
        *,
        order: Ordering = "none",
        partitions: int = 8,
        data_type: DataType = "json",
        ack_wait: float | timedelta = 30,
        max_deliver: int | None = None,
        backoff: Backoff = (),
        retain_dead: float | timedelta | None = None,
        keep_history: float | timedelta | None = None,
    ) -> Queue:
        """Create a queue: a stream that keeps messages until they are acked, and its one consumer of the same name.

        Args:
            name: Its name: 1 to 63 letters, digits, "_" or "-".
            order: As for `create_consumer`.
            partitions: As for `create_stream`.
            data_type: What messages hold: json, text or bytes.
            ack_wait: How long a delivery is leased before somebody else gets it.
            max_deliver: How many deliveries before a message becomes a dead letter; None for ever.
            backoff: How long a message waits after each failure.
            retain_dead: How long dead letters are kept; None for ever.
            keep_history: For how long acked messages are kept, with what became of their deliveries: see `history`.

        Raises:
            InvalidInput: A name or setting is not allowed.
            Conflict: A stream of that name exists.
        """
        self.create_stream(name, partitions=partitions, data_type=data_type, until_acked=True)
        try:
            self.create_consumer(
                name,
                name,
                order=order,
                ack_wait=ack_wait,
                max_deliver=max_deliver,
                backoff=backoff,
                retain_dead=retain_dead,
                keep_history=keep_history,
            )
        except BaseException:
            self.drop_stream(name)
            raise
        return self.queue(name)

    def create_group(
        self,
        stream: str,
        group: str,
        *,
        keep_unread: bool = False,
        expire_after: float | timedelta | None = None,
        start: Start | None = None,
        from_seq: int | None = None,
        from_time: datetime | None = None,
    ) -> Group:
        """Create a group: a consumer that is read by position, with claim, fetch and commit, instead of by acks.

        It gets every message of the log, also one whose time to live is over, or a version of a key that was replaced.

        Args:
            stream: The stream's name.
            group: Its own name, unlike that of any consumer of the stream.
            keep_unread: The stream keeps what the group has not claimed, whatever its retention says.
            expire_after: It is removed when nobody has claimed from it for so long; None never.
            start: "earliest", which is the default, or "latest".
            from_seq: Start with this message.
            from_time: Start with what was published since.

        Raises:
            InvalidInput: A name or setting is not allowed.
            NotFound: There is no such stream.
            Conflict: A group or consumer of that name exists.
        """
        settings = (keep_unread, rows.seconds(expire_after), start, from_seq, from_time)
        self._database.rows(statements.CREATE_GROUP, (stream, group, *settings))
        return self.group(stream, group)

    def group(self, stream: str, group: str) -> Group:
        """A group that exists; its first use says if it does not."""
        return Group(self, stream, group)

    def queue(self, name: str) -> Queue:
        """A queue that exists; its first use says if it does not."""
        return Queue(self, name)

    def consumer(self, stream: str, consumer: str) -> Consumer:
        """A consumer that exists; its first use says if it does not."""
        return Consumer(self, stream, consumer)

    def list_consumers(self, stream: str) -> list[ConsumerInfo]:
        """The consumers of a stream, by name."""
        found = self._database.rows(statements.LIST_CONSUMERS, (stream,), repeatable=True)
        return [rows.consumer_info(row) for row in found]

    def upkeep(self) -> Upkeep:
        """A service that sweeps and maintains for as long as it runs, where neither the HTTP server nor cron does."""
        return Upkeep(self)

    def sweep(self, stream: str | None = None) -> int:
        """Redeliver what has expired or come due, for the consumers of a stream or of all.

        Returns:
            How many messages became available.
        """
        found = self._database.rows(statements.SWEEP, (stream,))
        return int(found[0][0])

    def _transactions(self) -> Transactions:
        return Transactions(self.url)

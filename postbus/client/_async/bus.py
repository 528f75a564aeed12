"""A bus: streams, publishing, reading, consumers and groups, over Postgres or a server."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from postbus.client._async.consumer import AsyncConsumer
from postbus.client._async.group import AsyncGroup
from postbus.client._async.publishing import AsyncPublishing
from postbus.client._async.queue import AsyncQueue
from postbus.client._async.reading import AsyncReading
from postbus.client._async.streams import AsyncStreams
from postbus.client._async.tokens import AsyncTokens
from postbus.codec.settings import given
from postbus.db.url import without_password
from postbus.maintenance._async.upkeep import AsyncUpkeep
from postbus.model.consumer import Backoff, ConsumerInfo, Ordering, Start
from postbus.model.settings import ConsumerSettings
from postbus.model.stream import DataType
from postbus.operations import consumers, groups

if TYPE_CHECKING:
    from postbus.db._async.database import Connection


class AsyncBus(AsyncStreams, AsyncPublishing, AsyncReading):
    """A connection to Postbus; get one from `postbus.connect_async`. Safe to share between tasks.

    Every method raises `postbus.Unavailable` when Postgres or the server cannot be reached. Over HTTP, every method raises
    `postbus.NotAllowed` when the token does not allow it, and `connection` is not possible.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({without_password(self.url)!r})"

    @property
    def url(self) -> str:
        """The URL in use."""
        return self._transport.url

    @property
    def tokens(self) -> AsyncTokens:
        """The tokens for the HTTP server."""
        return AsyncTokens(self._transport)

    async def check(self) -> None:
        """Find out whether the bus can be used.

        Raises:
            Unavailable: Postgres or the server cannot be reached.
            MigrationDue: Postbus is not installed there, or is older or newer.
        """
        await self._transport.check()

    async def close(self) -> None:
        """Close all connections, and release the embedded Postgres."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def create_consumer(
        self,
        stream: str,
        consumer: str,
        *,
        start: Start | None = None,
        from_seq: int | None = None,
        from_time: datetime | None = None,
        connection: Connection | None = None,
        **settings: Unpack[ConsumerSettings],
    ) -> AsyncConsumer:
        """Create a consumer of a stream. It costs publishers nothing.

        Args:
            stream: The stream's name.
            consumer: Its own name: 1 to 63 letters, digits, "_" or "-".
            start: "earliest", which is the default, or "latest".
            from_seq: Start with this message.
            from_time: Start with what was published since.
            connection: A connection of yours, to create it in your transaction.
            settings: See `postbus.ConsumerSettings`.

        Raises:
            InvalidInput: A name or setting is not allowed; the error names the range.
            NotFound: There is no such stream.
            Conflict: The consumer exists.
        """
        call = consumers.create(
            stream,
            consumer,
            given(ConsumerSettings, settings),
            start=start,
            from_seq=from_seq,
            from_time=from_time,
        )
        await self._transport.run(call, connection)
        return self.consumer(stream, consumer)

    async def create_queue(
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
    ) -> AsyncQueue:
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
        await self.create_stream(name, partitions=partitions, data_type=data_type, until_acked=True)
        try:
            await self.create_consumer(
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
            await self.drop_stream(name)
            raise
        return self.queue(name)

    async def create_group(
        self,
        stream: str,
        group: str,
        *,
        keep_unread: bool = False,
        expire_after: float | timedelta | None = None,
        start: Start | None = None,
        from_seq: int | None = None,
        from_time: datetime | None = None,
    ) -> AsyncGroup:
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
        call = groups.create(
            stream,
            group,
            keep_unread=keep_unread,
            expire_after=expire_after,
            start=start,
            from_seq=from_seq,
            from_time=from_time,
        )
        await self._transport.run(call)
        return self.group(stream, group)

    def group(self, stream: str, group: str) -> AsyncGroup:
        """A group that exists; its first use fails if it does not."""
        return AsyncGroup(self._transport, stream, group)

    def queue(self, name: str) -> AsyncQueue:
        """A queue that exists; its first use fails if it does not."""
        return AsyncQueue(self._transport, name)

    def consumer(self, stream: str, consumer: str) -> AsyncConsumer:
        """A consumer that exists; its first use fails if it does not."""
        return AsyncConsumer(self._transport, stream, consumer)

    async def list_consumers(self, stream: str) -> list[ConsumerInfo]:
        """The consumers of a stream, by name."""
        return await self._transport.run(consumers.list_all(stream))

    def upkeep(self) -> AsyncUpkeep:
        """A service that sweeps and maintains for as long as it runs, where neither the HTTP server nor cron does."""
        return AsyncUpkeep(self)

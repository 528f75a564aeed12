"""A bus: streams, publishing, reading, consumers and groups, over Postgres or a server."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from postbus.client._async.applying import AsyncApplying
from postbus.client._async.channels import AsyncChannels
from postbus.client._async.consumer import AsyncConsumer
from postbus.client._async.group import AsyncGroup
from postbus.client._async.publishing import AsyncPublishing
from postbus.client._async.queue import AsyncQueue
from postbus.client._async.reading import AsyncReading
from postbus.client._async.schedules import AsyncSchedules
from postbus.client._async.sources import AsyncSources
from postbus.client._async.sqs import AsyncSqs
from postbus.client._async.streams import AsyncStreams
from postbus.client._async.tasks import AsyncTasks
from postbus.client._async.tokens import AsyncTokens
from postbus.client._async.webhook_sources import AsyncWebhookSources
from postbus.codec.settings import given
from postbus.db.url import without_password
from postbus.maintenance._async.background import AsyncBackgroundUpkeep
from postbus.maintenance._async.upkeep import AsyncUpkeep
from postbus.model.consumer import ConsumerInfo, Start
from postbus.model.push import PushInfo
from postbus.model.settings import ConsumerSettings
from postbus.model.stream import DataType
from postbus.operations import consumers, groups, push

if TYPE_CHECKING:
    from postbus.db.own_connections import AsyncOwnConnection


class AsyncBus(AsyncStreams, AsyncPublishing, AsyncReading, AsyncApplying):
    """A connection to Postbus; get one from `postbus.connect_async`. Safe to share between tasks.

    Every method raises `postbus.Unavailable` when Postgres or the server cannot be reached. Where a method takes a `connection`,
    give one of psycopg, or a connection or session of SQLAlchemy over psycopg, to run it in your transaction. Over HTTP, every
    method raises `postbus.NotAllowed` when the token does not allow it, and `connection` is not possible.
    """

    # `connect` starts it.
    _background: AsyncBackgroundUpkeep | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({without_password(self.url)!r})"

    @property
    def sqs(self) -> AsyncSqs:
        """The queues for clients of SQS."""
        return AsyncSqs(self._transport)

    @property
    def url(self) -> str:
        """The URL in use."""
        return self._transport.url

    @property
    def tokens(self) -> AsyncTokens:
        """The tokens for the HTTP server."""
        return AsyncTokens(self._transport)

    @property
    def channels(self) -> AsyncChannels:
        """The limits of streams' channels."""
        return AsyncChannels(self._transport)

    @property
    def tasks(self) -> AsyncTasks:
        """Redrives, discards, replays and moves in the background."""
        return AsyncTasks(self._transport)

    @property
    def schedules(self) -> AsyncSchedules:
        """The recurring schedules."""
        return AsyncSchedules(self._transport)

    @property
    def sources(self) -> AsyncSources:
        """The Postgres sources: changes of tables as messages."""
        return AsyncSources(self._transport)

    @property
    def webhook_sources(self) -> AsyncWebhookSources:
        """The webhook sources."""
        return AsyncWebhookSources(self._transport)

    async def list_pushes(self) -> list[PushInfo]:
        """The endpoints of all push consumers, and how they do."""
        return await self._transport.run(push.list_all())

    async def check(self) -> None:
        """Check that the bus can be used.

        Raises:
            Unavailable: Postgres or the server cannot be reached.
            MigrationDue: Postbus is not installed there, or its version differs.
        """
        await self._transport.check()

    async def close(self) -> None:
        """Close all connections, and release the embedded Postgres."""
        if self._background is not None:
            await self._background.close()
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
        exist_ok: bool = False,
        connection: AsyncOwnConnection | None = None,
        **settings: Unpack[ConsumerSettings],
    ) -> AsyncConsumer:
        """Create a consumer of a stream. It costs publishers nothing.

        Args:
            stream: The stream's name.
            consumer: Its own name: 1 to 63 letters, digits, "_" or "-".
            start: "earliest" (the default) or "latest".
            from_seq: Start with this message.
            from_time: Start with messages published at or after this time.
            exist_ok: Leave a consumer that exists as it is, where it stands. Settings that you give, other than their defaults,
                must be its own.
            connection: Your own connection, to create it in your transaction.
            settings: See `postbus.ConsumerSettings`.

        Raises:
            InvalidInput: A name or setting is not valid; the error gives the range.
            NotFound: There is no such stream.
            Conflict: The consumer exists; with `exist_ok`, it has other settings.
        """
        call = consumers.create(
            stream,
            consumer,
            given(ConsumerSettings, settings),
            start=start,
            from_seq=from_seq,
            from_time=from_time,
            exist_ok=exist_ok,
        )
        await self._transport.run(call, connection)
        return self.consumer(stream, consumer)

    async def create_queue(
        self,
        name: str,
        *,
        partitions: int = 1,
        data_type: DataType = "json",
        channel_tokens: int | None = None,
        exist_ok: bool = False,
        **settings: Unpack[ConsumerSettings],
    ) -> AsyncQueue:
        """Create a queue: a stream that keeps messages until they are acked, and its one consumer of the same name.

        While nothing fails, it is first in, first out. Failed messages come again before new ones.

        Args:
            name: Its name: 1 to 63 letters, digits, "_" or "-".
            partitions: With one, receivers take turns. With more, they work beside each other, and messages are in order within
                each partition only.
            data_type: What messages hold: json, text or bytes.
            channel_tokens: How many leading tokens of a key name its channel; None: no channels.
            exist_ok: Leave a queue that exists as it is. Settings that you give, other than their defaults, must be its own.
            **settings: As for `create_consumer`. `order` is "none" unless it is given.

        Raises:
            InvalidInput: A name or setting is not valid.
            Conflict: A stream of that name exists; with `exist_ok`, it is no queue, or has other settings.
        """
        chosen: ConsumerSettings = {"order": "none", **settings}
        await self.create_stream(
            name,
            partitions=partitions,
            data_type=data_type,
            channel_tokens=channel_tokens,
            until_acked=True,
            exist_ok=exist_ok,
        )
        try:
            await self.create_consumer(name, name, exist_ok=exist_ok, **chosen)
        except BaseException:
            if not exist_ok:
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
        exist_ok: bool = False,
    ) -> AsyncGroup:
        """Create a group: a consumer that is read by position, with claim, fetch and commit, instead of by acks.

        It gets every message of the log, including expired ones and replaced versions of a key.

        Args:
            stream: The stream's name.
            group: Its own name, different from that of any consumer of the stream.
            keep_unread: The stream keeps messages that the group has not claimed, whatever its retention.
            expire_after: The group is removed if nothing claims from it for this long; None never removes it.
            start: "earliest" (the default) or "latest".
            from_seq: Start with this message.
            from_time: Start with messages published at or after this time.
            exist_ok: Leave a group that exists as it is, where it stands. Settings that you give must be its own.

        Raises:
            InvalidInput: A name or setting is not valid.
            NotFound: There is no such stream.
            Conflict: A group or consumer of that name exists; with `exist_ok`, a consumer, or a group with other settings.
        """
        call = groups.create(
            stream,
            group,
            keep_unread=keep_unread,
            expire_after=expire_after,
            start=start,
            from_seq=from_seq,
            from_time=from_time,
            exist_ok=exist_ok,
        )
        await self._transport.run(call)
        return self.group(stream, group)

    def group(self, stream: str, group: str) -> AsyncGroup:
        """An existing group. If it does not exist, its first use fails."""
        return AsyncGroup(self._transport, stream, group)

    def queue(self, name: str) -> AsyncQueue:
        """An existing queue. If it does not exist, its first use fails."""
        return AsyncQueue(self._transport, name, headers=self._headers)

    def consumer(self, stream: str, consumer: str) -> AsyncConsumer:
        """An existing consumer. If it does not exist, its first use fails."""
        return AsyncConsumer(self._transport, stream, consumer)

    async def list_consumers(self, stream: str) -> list[ConsumerInfo]:
        """The consumers of a stream, by name."""
        return await self._transport.run(consumers.list_all(stream))

    def upkeep(self) -> AsyncUpkeep:
        """A service that sweeps and maintains while it runs, for a program of its own.

        Every open bus does so in the background, unless another process does or `upkeep=False` was given.
        """
        return AsyncUpkeep(self)

"""The part of a bus that manages streams."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Unpack

from postbus.client._async.base import AsyncClient
from postbus.codec.settings import given
from postbus.model.archive import ArchiveInfo
from postbus.model.duration import Duration
from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.pipeline import PipelineInfo
from postbus.model.settings import StreamChanges, StreamSettings
from postbus.model.stream import HorizonHolder, StreamInfo
from postbus.operations import streams

if TYPE_CHECKING:
    from postbus.db.own_connections import AsyncOwnConnection


class AsyncStreams(AsyncClient):
    """The part of a bus that manages streams."""

    async def create_stream(
        self,
        stream: str,
        *,
        exist_ok: bool = False,
        connection: AsyncOwnConnection | None = None,
        **settings: Unpack[StreamSettings],
    ) -> None:
        """Create a stream.

        Args:
            stream: Its name: 1 to 63 letters, digits, "_" or "-".
            exist_ok: Leave a stream that exists as it is. Settings that you give, other than their defaults, must be its own.
            connection: Your own connection, to create it in your transaction.
            settings: See `postbus.StreamSettings`.

        Raises:
            InvalidInput: A name or setting is not valid.
            Conflict: The stream exists; with `exist_ok`, it has other settings.
        """
        await self._transport.run(
            streams.create(stream, given(StreamSettings, settings), exist_ok=exist_ok), connection
        )

    async def alter_stream(
        self,
        stream: str,
        *,
        unset: tuple[str, ...] = (),
        connection: AsyncOwnConnection | None = None,
        **settings: Unpack[StreamChanges],
    ) -> None:
        """Change settings of a stream.

        Another number of `partitions` holds for what is published from now on, or, with a `connection`, after the next
        maintenance. Each consumer first reads what was published before: messages of a key stay in order.

        Args:
            stream: The stream's name.
            unset: Names of settings to put back to none: retain_up_to, retain_at_least, max_messages, max_storage, dedup_window.
            connection: Your own connection.
            settings: See `postbus.StreamSettings`. None leaves a setting as it is.

        Raises:
            InvalidInput: A setting is not valid.
            NotFound: There is no such stream.
        """
        await self._transport.run(streams.alter(stream, given(StreamChanges, settings), unset), connection)

    async def drop_stream(self, stream: str, *, connection: AsyncOwnConnection | None = None) -> None:
        """Remove a stream with all its messages. Waits for open transactions that have published to it.

        Raises:
            NotFound: There is no such stream.
        """
        await self._transport.run(streams.drop(stream), connection)
        self._transport.forget(stream)

    async def stream_info(self, stream: str) -> StreamInfo:
        """A stream's settings and size.

        Raises:
            NotFound: There is no such stream.
        """
        return await self._transport.run(streams.info(stream))

    async def list_streams(self) -> list[StreamInfo]:
        """All streams, in order of their names."""
        return await self._transport.run(streams.list_all())

    async def overview(self, *, sizes: bool = False) -> list[StreamOverview]:
        """An overview of all streams, by name. It is cheap enough to query every second, however many streams there are.

        Args:
            sizes: Also return how many messages and bytes each holds and how many are scheduled, which takes longer.
        """
        return await self._transport.run(streams.overview(sizes=sizes))

    async def consumer_overview(self, stream: str | None = None) -> list[ConsumerOverview]:
        """An overview of the consumers of a stream, or of all streams, by stream and name: backlog, in flight, waiting, dead.

        It costs the same however many messages there are: about a thousand of them are looked at for each consumer.

        Raises:
            NotFound: There is no such stream.
        """
        return await self._transport.run(streams.consumer_overview(stream))

    async def purge(
        self,
        stream: str,
        *,
        before_seq: int | None = None,
        before_time: datetime | None = None,
        everything: bool = False,
    ) -> int:
        """Remove the messages below a seq, or published before a time, or all committed ones.

        Readers no longer see them; maintenance frees their space later.

        Returns:
            The stream's new start: messages below this seq were removed.

        Raises:
            InvalidInput: Not exactly one of the three was given.
        """
        call = streams.purge(stream, before_seq=before_seq, before_time=before_time, everything=everything)
        return await self._transport.run(call)

    async def publish_rate(self, stream: str) -> float:
        """About how many messages a second were published to a stream in the last minute."""
        return await self._transport.run(streams.publish_rate(stream))

    async def publish_counts(self, stream: str, *, span: Duration = timedelta(hours=1), buckets: int = 60) -> list[int]:
        """About how many messages were published to a stream in each part of the last hour, or of another span, the oldest first.

        Args:
            stream: The stream's name.
            span: How far back to look.
            buckets: How many parts of it to count, 1 to 500.
        """
        return await self._transport.run(streams.publish_counts(stream, span, buckets))

    async def horizon(self, stream: str) -> int:
        """The seq up to which a stream can be read. All transactions that published at or below it have ended."""
        return await self._transport.run(streams.horizon(stream))

    async def horizon_holders(self, stream: str) -> list[HorizonHolder]:
        """The open transactions that block readers of a stream, the furthest back first.

        Over HTTP, their statement (`query`) is not shown.
        """
        return await self._transport.run(streams.horizon_holders(stream))

    async def maintain(self, stream: str | None = None) -> int:
        """Maintain the logs of all streams, or of one: begin, seal and drop segments where due.

        Returns:
            How many steps were taken.
        """
        return await self._transport.run(streams.maintain(stream))

    async def list_pipelines(self) -> list[PipelineInfo]:
        """The pipelines of this bus, and their progress."""
        return await self._transport.run(streams.list_pipelines())

    async def archive_info(self, stream: str) -> ArchiveInfo | None:
        """The archive of a stream; None if it has none.

        Raises:
            NotFound: There is no such stream.
        """
        return await self._transport.run(streams.archive_info(stream))

    async def sweep(self, stream: str | None = None) -> int:
        """Redeliver expired and due messages, for the consumers of one stream or of all.

        Returns:
            How many messages became available.
        """
        return await self._transport.run(streams.sweep(stream))

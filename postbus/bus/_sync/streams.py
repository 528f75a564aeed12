# Generated from postbus/bus/_async/streams.py by `make generate`; edit that file.

"""The streams of a bus: creating, altering, looking at and looking after them."""

from __future__ import annotations

from datetime import datetime, timedelta

from postbus.bus._sync.base import BusBase
from postbus.codec import rows
from postbus.db import statements
from postbus.db._sync.database import Connection
from postbus.model.archive import ArchiveInfo
from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.pipeline import PipelineInfo
from postbus.model.stream import DataType, HorizonHolder, StreamInfo, WhenFull


class Streams(BusBase):
    """The part of a bus that is about streams."""

    def create_stream(
        self,
        stream: str,
        *,
        partitions: int = 8,
        data_type: DataType = "json",
        max_message_bytes: int = 8 * 1024 * 1024,
        segment_bytes: int = 256 * 1024 * 1024,
        segment_age: float | timedelta = timedelta(days=1),
        retain_up_to: float | timedelta | None = None,
        retain_at_least: float | timedelta | None = None,
        max_messages: int | None = None,
        max_storage: int | None = None,
        until_acked: bool = False,
        when_full: WhenFull = "evict",
        dedup_window: float | timedelta | None = None,
        one_message_per_key: bool = False,
        process_unmodified: bool = False,
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
            retain_up_to: Messages older than this go; None keeps them.
            retain_at_least: Messages younger than this stay, whatever the limits say.
            max_messages: How many messages it holds at most.
            max_storage: How many bytes it takes on disk at most, kept to within a tenth.
            until_acked: Messages go when all consumers have finished them.
            when_full: At a limit, the oldest messages go ("evict"), or new ones are refused with `StreamFull` ("refuse").
            dedup_window: A message whose `dedup_id` was published within this time is not published again.
            one_message_per_key: Publishing a key replaces it: consumers get its latest version only, and `state` shows all.
            process_unmodified: There, publish data that has not changed all the same.
            connection: A connection of yours, to create it in your transaction.

        Raises:
            InvalidInput: A name or setting is not allowed.
            Conflict: The stream exists.
        """
        parameters = (
            stream,
            partitions,
            data_type,
            max_message_bytes,
            segment_bytes,
            rows.seconds(segment_age),
            rows.seconds(retain_up_to),
            rows.seconds(retain_at_least),
            max_messages,
            max_storage,
            until_acked,
            when_full,
            rows.seconds(dedup_window),
            one_message_per_key,
            process_unmodified,
        )
        self._database.rows(statements.CREATE_STREAM, parameters, connection=connection)

    def alter_stream(
        self,
        stream: str,
        *,
        partitions: int | None = None,
        max_message_bytes: int | None = None,
        segment_bytes: int | None = None,
        segment_age: float | timedelta | None = None,
        retain_up_to: float | timedelta | None = None,
        retain_at_least: float | timedelta | None = None,
        max_messages: int | None = None,
        max_storage: int | None = None,
        until_acked: bool | None = None,
        when_full: WhenFull | None = None,
        dedup_window: float | timedelta | None = None,
        process_unmodified: bool | None = None,
        unset: tuple[str, ...] = (),
        connection: Connection | None = None,
    ) -> None:
        """Change settings of a stream; None leaves one as it is.

        `unset` names those to put back to no bound: retain_up_to, retain_at_least, max_messages, max_storage,
        dedup_window.

        Another number of `partitions` holds for what is published from now on, or, with a `connection`, after the next
        maintenance. Each consumer first reads what was published before: messages of a key stay in order.

        Raises:
            InvalidInput: A setting is not allowed.
            NotFound: There is no such stream.
        """
        parameters = (
            stream,
            partitions,
            max_message_bytes,
            segment_bytes,
            rows.seconds(segment_age),
            rows.seconds(retain_up_to),
            rows.seconds(retain_at_least),
            max_messages,
            max_storage,
            until_acked,
            when_full,
            rows.seconds(dedup_window),
            process_unmodified,
            rows.text_array(unset),
        )
        self._database.rows(statements.ALTER_STREAM, parameters, connection=connection)
        if partitions is not None and connection is None:
            self.maintain(stream)

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

    def overview(self, *, sizes: bool = False) -> list[StreamOverview]:
        """Where all streams stand, by name: cheap enough to be asked every second, however many there are.

        Args:
            sizes: Say how many messages and bytes they hold, too, which costs a look at the files of each.
        """
        streams: list[StreamOverview] = []
        last_name = ""
        while found := self._database.rows(statements.OVERVIEW, (last_name, sizes), repeatable=True):
            streams.extend(rows.stream_overview(row) for row in found)
            last_name = streams[-1].name
        return streams

    def consumer_overview(self, stream: str) -> list[ConsumerOverview]:
        """Where all consumers of a stream stand, by name.

        Raises:
            NotFound: There is no such stream.
        """
        found = self._database.rows(statements.CONSUMER_OVERVIEW, (stream,), repeatable=True)
        return [rows.consumer_overview(row) for row in found]

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

    def publish_rate(self, stream: str) -> float:
        """About how many messages a second were published to a stream in the last minute."""
        found = self._database.rows(statements.PUBLISH_RATE, (stream,), repeatable=True)
        return float(found[0][0])

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

    def list_pipelines(self) -> list[PipelineInfo]:
        """The pipelines that ran on this bus, and how they are getting on."""
        found = self._database.rows(statements.LIST_PIPELINES, repeatable=True)
        return [rows.pipeline_info(row) for row in found]

    def archive_info(self, stream: str) -> ArchiveInfo | None:
        """The archive of a stream; None when it has none.

        Raises:
            NotFound: There is no such stream.
        """
        found = self._database.rows(statements.ARCHIVE_STATE, (stream,), repeatable=True)
        return rows.archive_info(found[0]) if found else None

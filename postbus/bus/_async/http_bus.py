"""A bus over HTTP: the same names as over Postgres, by requests to a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NoReturn

from postbus.bus._async.bus import AsyncBus
from postbus.bus._async.http_consumer import AsyncHttpConsumer, AsyncHttpQueue, refuse
from postbus.bus._async.http_group import AsyncHttpGroup
from postbus.codec import answers, fields
from postbus.db._async.database import Connection
from postbus.db._async.transactions import AsyncTransactions
from postbus.http._async.client import Answer, AsyncHttpClient
from postbus.model.archive import ArchiveInfo
from postbus.model.consumer import Backoff, ConsumerInfo, Filter, OnDead, OnExpired, Ordering, Start
from postbus.model.errors import InvalidInput, NotFound
from postbus.model.message import Message, Page, Scheduled
from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.pipeline import PipelineInfo
from postbus.model.stream import DataType, HorizonHolder, StreamInfo, WhenFull


class AsyncHttpBus(AsyncBus):
    """A connection to a Postbus server; get one from `postbus.connect_async("http://…")`. Safe to share between tasks.

    Every method raises `postbus.Unavailable` when the server cannot be reached, and `postbus.NotAllowed` when the token does not
    allow it. What needs a connection to Postgres itself is refused.
    """

    def __init__(self, client: AsyncHttpClient) -> None:
        self._client = client

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        return self._client.url

    def __getattr__(self, name: str) -> NoReturn:
        # What the bus over Postgres has, and this one has not: its pool, and what goes with it.
        if name in ("_database", "_wakeups", "_streams", "_server"):
            raise InvalidInput("this is not possible over HTTP", "connect to Postgres itself: postgresql://…")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    async def close(self) -> None:
        await self._client.close()

    async def create_stream(
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
        refuse(connection)
        body = fields.body(
            name=stream,
            partitions=partitions,
            data_type=data_type,
            max_message_bytes=max_message_bytes,
            segment_bytes=segment_bytes,
            segment_age_ms=fields.ms(segment_age),
            retain_up_to_ms=fields.ms(retain_up_to),
            retain_at_least_ms=fields.ms(retain_at_least),
            max_messages=max_messages,
            max_storage=max_storage,
            until_acked=until_acked,
            when_full=when_full,
            dedup_window_ms=fields.ms(dedup_window),
            one_message_per_key=one_message_per_key,
            process_unmodified=process_unmodified,
        )
        await self._client.call("POST", fields.path("streams"), body=body)

    async def alter_stream(
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
        refuse(connection)
        body = fields.edit(
            unset,
            partitions=partitions,
            max_message_bytes=max_message_bytes,
            segment_bytes=segment_bytes,
            segment_age_ms=fields.ms(segment_age),
            retain_up_to_ms=fields.ms(retain_up_to),
            retain_at_least_ms=fields.ms(retain_at_least),
            max_messages=max_messages,
            max_storage=max_storage,
            until_acked=until_acked,
            when_full=when_full,
            dedup_window_ms=fields.ms(dedup_window),
            process_unmodified=process_unmodified,
        )
        await self._client.call("PATCH", fields.path("streams", stream), body=body, repeatable=True)

    async def drop_stream(self, stream: str, *, connection: Connection | None = None) -> None:
        refuse(connection)
        await self._client.call("DELETE", fields.path("streams", stream))

    async def stream_info(self, stream: str) -> StreamInfo:
        return answers.stream_info((await self._get("streams", stream)).data)

    async def list_streams(self) -> list[StreamInfo]:
        return [answers.stream_info(each) for each in (await self._get("streams")).data]

    async def overview(self, *, sizes: bool = False) -> list[StreamOverview]:
        found = await self._get("overview", query={"sizes": "true" if sizes else None})
        return [answers.stream_overview(each) for each in found.data]

    async def consumer_overview(self, stream: str) -> list[ConsumerOverview]:
        return [answers.consumer_overview(each) for each in (await self._get("streams", stream, "overview")).data]

    async def list_pipelines(self) -> list[PipelineInfo]:
        return [answers.pipeline_info(each) for each in (await self._get("pipelines")).data]

    async def archive_info(self, stream: str) -> ArchiveInfo | None:
        found = (await self._get("streams", stream, "archive")).data
        return None if found is None else answers.archive_info(found)

    async def purge(
        self,
        stream: str,
        *,
        before_seq: int | None = None,
        before_time: datetime | None = None,
        everything: bool = False,
    ) -> int:
        body = fields.body(before_seq=before_seq, before_time=fields.time(before_time), everything=everything or None)
        answer = await self._client.call("POST", fields.path("streams", stream, "purge"), body=body)
        return int(answer.data["start_seq"])

    async def publish_rate(self, stream: str) -> float:
        return float((await self._get("streams", stream, "stats")).data["publish_rate_estimate"])

    async def horizon(self, stream: str) -> int:
        return int((await self._get("streams", stream, "stats")).data["horizon_seq"])

    async def horizon_holders(self, stream: str) -> list[HorizonHolder]:
        """The open transactions that keep readers of a stream from going on. What they do (`query`) is not told over HTTP."""
        return [answers.horizon_holder(each) for each in (await self._get("streams", stream, "stats")).data["holders"]]

    async def maintain(self, stream: str | None = None) -> int:
        answer = await self._client.call(
            "POST", fields.path("maintain"), body=fields.body(stream=stream), repeatable=True
        )
        return int(answer.data["count"])

    async def sweep(self, stream: str | None = None) -> int:
        answer = await self._client.call("POST", fields.path("sweep"), body=fields.body(stream=stream))
        return int(answer.data["count"])

    async def _publish(
        self,
        stream: str,
        message: Message,
        ttl: float | timedelta | None,
        deliver_at: datetime | None,
        delay: float | timedelta | None,
        connection: Connection | None,
    ) -> int:
        return (await self._publish_many(stream, [message], ttl, deliver_at, delay, connection))[0]

    async def _publish_many(
        self,
        stream: str,
        messages: Sequence[Message],
        ttl: float | timedelta | None,
        deliver_at: datetime | None,
        delay: float | timedelta | None,
        connection: Connection | None,
    ) -> list[int]:
        refuse(connection)
        if not messages:
            return []
        body = fields.new_messages(
            messages, ttl_ms=fields.ms(ttl), deliver_at=fields.time(deliver_at), delay_ms=fields.ms(delay)
        )
        # Never repeated: it might publish twice.
        answer = await self._client.call("POST", fields.path("streams", stream, "messages"), body=body)
        return answers.numbers(answer.data, messages)

    async def delete_key(self, stream: str, key: str, *, connection: Connection | None = None) -> int | None:
        refuse(connection)
        try:
            answer = await self._client.call("DELETE", fields.path("streams", stream, "state", key))
        except NotFound:
            await self.stream_info(stream)  # It is the stream that is missing, or only the key.
            return None
        return int(answer.data["seq"])

    async def list_scheduled(
        self, stream: str, *, key_pattern: str | None = None, after: Scheduled | None = None, max_messages: int = 100
    ) -> list[Scheduled]:
        query = {
            "limit": max_messages,
            "key_pattern": key_pattern,
            "after_at": None if after is None else fields.time(after.deliver_at),
            "after_id": None if after is None else after.id,
        }
        answer = await self._get("streams", stream, "scheduled", query=query)
        return [answers.scheduled(each) for each in answer.data]

    async def cancel(self, stream: str, ids: int | Sequence[int], *, connection: Connection | None = None) -> int:
        refuse(connection)
        numbers = [ids] if isinstance(ids, int) else list(ids)
        if not numbers:
            return 0
        path = fields.path("streams", stream, "scheduled", "cancel")
        return int((await self._client.call("POST", path, body=fields.body(ids=numbers))).data["count"])

    async def reschedule(
        self, stream: str, ids: int | Sequence[int], deliver_at: datetime, *, connection: Connection | None = None
    ) -> int:
        refuse(connection)
        numbers = [ids] if isinstance(ids, int) else list(ids)
        if not numbers:
            return 0
        body = fields.body(ids=numbers, deliver_at=fields.time(deliver_at))
        path = fields.path("streams", stream, "scheduled", "reschedule")
        return int((await self._client.call("POST", path, body=body)).data["count"])

    async def read(
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
        query = {
            "from_seq": from_seq,
            "to_seq": to_seq,
            "from_time": fields.time(from_time),
            "to_time": fields.time(to_time),
            "key": key,
            "key_pattern": key_pattern,
            "partition": partition,
            "limit": max_messages,
            "sort": "seq_desc" if backwards else None,
            "resume": resume,
        }
        return answers.page((await self._get("streams", stream, "messages", query=query)).content)

    async def state(
        self,
        stream: str,
        *,
        key: str | None = None,
        key_pattern: str | None = None,
        after_key: str = "",
        max_messages: int = 1000,
    ) -> list[Message]:
        query = {"key": key, "key_pattern": key_pattern, "after_key": after_key or None, "limit": max_messages}
        return answers.messages((await self._get("streams", stream, "state", query=query)).data)

    async def create_consumer(
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
    ) -> AsyncHttpConsumer:
        refuse(connection)
        body = fields.body(
            name=consumer,
            order=order,
            ack_wait_ms=fields.ms(ack_wait),
            max_ack_pending=max_ack_pending,
            max_deliver=max_deliver,
            retain_dead_ms=fields.ms(retain_dead),
            max_per_key=max_per_key,
            max_waiting=max_waiting,
            on_dead=on_dead,
            on_expired=on_expired,
            keep_unread=keep_unread,
            expire_after_ms=fields.ms(expire_after),
            keep_history_ms=fields.ms(keep_history),
            start=start,
            from_seq=from_seq,
            from_time=fields.time(from_time),
            **fields.backoff(backoff),
            **fields.filters(filter),
        )
        await self._client.call("POST", fields.path("streams", stream, "consumers"), body=body)
        return self.consumer(stream, consumer)

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
    ) -> AsyncHttpGroup:
        body = fields.body(
            name=group,
            keep_unread=keep_unread,
            expire_after_ms=fields.ms(expire_after),
            start=start,
            from_seq=from_seq,
            from_time=fields.time(from_time),
        )
        await self._client.call("POST", fields.path("streams", stream, "groups"), body=body)
        return self.group(stream, group)

    def group(self, stream: str, group: str) -> AsyncHttpGroup:
        return AsyncHttpGroup(self, stream, group)

    def queue(self, name: str) -> AsyncHttpQueue:
        return AsyncHttpQueue(self, name)

    def consumer(self, stream: str, consumer: str) -> AsyncHttpConsumer:
        return AsyncHttpConsumer(self, stream, consumer)

    async def list_consumers(self, stream: str) -> list[ConsumerInfo]:
        return [answers.consumer_info(each) for each in (await self._get("streams", stream, "consumers")).data]

    def _transactions(self) -> AsyncTransactions:
        raise InvalidInput(
            "transaction=True is not possible over HTTP: the server has transactions of its own",
            "connect to Postgres itself: postgresql://…",
        )

    async def _get(self, *names: str, query: Mapping[str, Any] | None = None) -> Answer:
        return await self._client.call("GET", fields.path(*names), query=query, repeatable=True)

"""A consumer over HTTP: the same names as over Postgres, by requests to a server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from postbus.bus._async.consumer import AsyncConsumer
from postbus.bus._async.queue import AsyncQueue
from postbus.codec import answers, fields, rows
from postbus.http._sync.client import HttpClient
from postbus.model.consumer import (
    Backoff,
    ConsumerInfo,
    ConsumerStats,
    DeadLetter,
    Filter,
    HistoryEntry,
    OnDead,
    OnExpired,
    Outcome,
    Peeked,
    Start,
    State,
)
from postbus.model.delivery import Batch, Deliveries, ack_ids
from postbus.model.errors import InvalidInput, Unavailable
from postbus.transport._async.waiting import AsyncHttpWaiting, AsyncWaitStrategy
from postbus.worker.leases import HttpLeaseExtender, LeaseExtender

if TYPE_CHECKING:
    from postbus.bus._async.http_bus import AsyncHttpBus
    from postbus.db._async.connection import AsyncLeanConnection
    from postbus.db._async.database import Connection
    from postbus.http._async.client import Answer

# The most that one answer holds. Asking for more than the engine gives is an error there, so it is passed on.
_MOST_ANSWERED: Final = 1000
_MOST_RECEIVED: Final = 10_000
# One request waits so long at most: what lies between may cut a connection on which nothing happens.
_POLL_SECONDS: Final = 50.0


def refuse(connection: Connection | None) -> None:
    """Say that a transaction of the caller's is out of reach.

    Raises:
        InvalidInput: There is one.
    """
    if connection is not None:
        raise InvalidInput(
            "connection= is not possible over HTTP: the server has transactions of its own",
            "connect to Postgres itself: postgresql://…",
        )


class AsyncHttpConsumer(AsyncConsumer):
    """A named reader of a stream, over HTTP; get one from `bus.consumer`. Safe to share between tasks.

    An answer holds 1,000 messages at most, also where more were asked for.
    """

    _bus: AsyncHttpBus

    async def receive(
        self,
        max_messages: int = 1,
        *,
        ack: Deliveries | None = None,
        wait: float | timedelta = 0,
        ack_wait: float | timedelta | None = None,
        connection: Connection | None = None,
    ) -> Batch:
        refuse(connection)
        until = time.monotonic() + (rows.seconds(wait) or timedelta()).total_seconds()
        batch = await self._ask(max_messages, ack, until - time.monotonic(), ack_wait)
        acked_count = batch.acked_count
        try:
            while not batch and (left := until - time.monotonic()) > 0:
                batch = await self._ask(max_messages, None, left, ack_wait)
        except Unavailable:
            # "Nothing was done" would not be true of the ack.
            if not acked_count:
                raise
        return replace(batch, acked_count=acked_count)

    async def _next_batch(
        self,
        max_messages: int,
        ack_wait: float | timedelta | None,
        ack: Batch | None,
        flushing: AsyncLeanConnection | None,
    ) -> tuple[Batch, AsyncLeanConnection | None]:
        return await self.receive(max_messages, ack=ack, ack_wait=ack_wait), None

    async def _ask(
        self, max_messages: int, ack: Deliveries | None, wait: float, ack_wait: float | timedelta | None
    ) -> Batch:
        seconds = max(0.0, min(wait, _POLL_SECONDS))
        wanted = {
            "batch_size": min(max_messages, _MOST_ANSWERED) if max_messages <= _MOST_RECEIVED else max_messages,
            "wait_for": fields.ms(seconds) or None,
            "ack_wait_ms": fields.ms(ack_wait),
        }
        if ack is not None and (ids := ack_ids(ack)):
            answer = await self._post("receive", wait=seconds, **wanted, ack_ids=ids)
        else:
            answer = await self._bus._client.call("GET", self._path("receive"), query=wanted, wait=seconds)
        return answers.batch(answer.data, answer.count)

    async def ack(self, deliveries: Deliveries, *, connection: Connection | None = None) -> int:
        return await self._finish("ack", deliveries, connection)

    async def nack(
        self,
        deliveries: Deliveries,
        *,
        delay: float | timedelta | None = None,
        reason: str | None = None,
        untried: bool = False,
        connection: Connection | None = None,
    ) -> int:
        return await self._finish(
            "nack", deliveries, connection, delay_ms=fields.ms(delay), reason=reason, untried=untried or None
        )

    async def extend(
        self,
        deliveries: Deliveries,
        *,
        ack_wait: float | timedelta | None = None,
        shorten: bool = False,
        connection: Connection | None = None,
    ) -> int:
        return await self._finish(
            "extend", deliveries, connection, ack_wait_ms=fields.ms(ack_wait), shorten=shorten or None
        )

    async def terminate(
        self, deliveries: Deliveries, *, reason: str | None = None, connection: Connection | None = None
    ) -> int:
        return await self._finish("terminate", deliveries, connection, reason=reason)

    async def info(self) -> ConsumerInfo:
        return answers.consumer_info((await self._get()).data)

    async def alter(
        self,
        *,
        ack_wait: float | timedelta | None = None,
        max_ack_pending: int | None = None,
        max_deliver: int | None = None,
        backoff: Backoff | None = None,
        retain_dead: float | timedelta | None = None,
        max_per_key: int | None = None,
        max_waiting: int | None = None,
        on_dead: OnDead | None = None,
        filter: Filter | str | None = None,
        on_expired: OnExpired | None = None,
        keep_unread: bool | None = None,
        expire_after: float | timedelta | None = None,
        keep_history: float | timedelta | None = None,
        unset: tuple[str, ...] = (),
    ) -> None:
        body = fields.edit(
            unset,
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
            **fields.backoff(backoff),
            **fields.filters(filter),
        )
        await self._bus._client.call("PATCH", self._path(), body=body, repeatable=True)

    async def pause(self) -> None:
        await self._bus._client.call("POST", self._path("pause"), repeatable=True)

    async def resume(self) -> None:
        await self._bus._client.call("POST", self._path("resume"), repeatable=True)

    async def seek(
        self, start: Start | None = None, *, from_seq: int | None = None, from_time: datetime | None = None
    ) -> int:
        answer = await self._post("seek", start=start, from_seq=from_seq, from_time=fields.time(from_time))
        return int(answer.data["position_seq"])

    async def stats(self) -> ConsumerStats:
        return answers.consumer_stats((await self._get("stats")).data)

    async def peek(
        self,
        *,
        state: State | None = None,
        key_pattern: str | None = None,
        after_seq: int = 0,
        max_messages: int = 100,
    ) -> list[Peeked]:
        query = {
            "state": state or "any",
            "key_pattern": key_pattern,
            "after_seq": after_seq or None,
            "limit": max_messages,
        }
        return [answers.peeked(each) for each in (await self._get("messages", query=query)).data]

    async def history(
        self, *, outcome: Outcome | None = None, before_time: datetime | None = None, max_messages: int = 100
    ) -> list[HistoryEntry]:
        query = {"outcome": outcome, "before_time": fields.time(before_time), "limit": max_messages}
        return [answers.history_entry(each) for each in (await self._get("history", query=query)).data]

    async def dead_letters(
        self,
        *,
        seqs: Sequence[int] | None = None,
        key_pattern: str | None = None,
        reason_like: str | None = None,
        after_seq: int = 0,
        max_messages: int = 100,
    ) -> list[DeadLetter]:
        query = {
            "seqs": None if seqs is None else ",".join(map(str, seqs)),
            "key_pattern": key_pattern,
            "reason_like": reason_like,
            "after_seq": after_seq or None,
            "limit": max_messages,
        }
        return [answers.dead_letter(each) for each in (await self._get("dead_letters", query=query)).data]

    async def drop(self) -> None:
        await self._bus._client.call("DELETE", self._path())

    def _waiting(self) -> AsyncWaitStrategy:
        return AsyncHttpWaiting()

    def _lease_extender(self, *, connect_timeout: float) -> LeaseExtender:
        client = HttpClient(self._bus.url, token=self._bus._client._token, connect_timeout=connect_timeout)
        return HttpLeaseExtender(client, self.stream, self.name)

    async def _discard_some(self, seqs: Sequence[int] | None, key_pattern: str | None, reason_like: str | None) -> int:
        answer = await self._post(
            "dead_letters", "discard", seqs=seqs and list(seqs), key_pattern=key_pattern, reason_like=reason_like
        )
        return int(answer.data["count"])

    async def _redrive_some(
        self,
        seqs: Sequence[int] | None,
        key_pattern: str | None,
        reason_like: str | None,
        to_stream: str | None,
        max_messages: int,
    ) -> int:
        answer = await self._post(
            "dead_letters",
            "redrive",
            seqs=seqs and list(seqs),
            key_pattern=key_pattern,
            reason_like=reason_like,
            to_stream=to_stream,
            limit=max_messages,
        )
        return int(answer.data["count"])

    async def _replay_some(
        self,
        from_seq: int | None,
        to_seq: int | None,
        from_time: datetime | None,
        to_time: datetime | None,
        key_pattern: str | None,
        max_messages: int,
        resume: str | None,
    ) -> tuple[int, str | None]:
        answer = await self._post(
            "replay",
            from_seq=from_seq,
            to_seq=to_seq,
            from_time=fields.time(from_time),
            to_time=fields.time(to_time),
            key_pattern=key_pattern,
            limit=max_messages,
            resume=resume,
        )
        return answer.data["count"], answer.data.get("resume")

    async def _finish(self, what: str, deliveries: Deliveries, connection: Connection | None, **arguments: Any) -> int:
        refuse(connection)
        ids = ack_ids(deliveries)
        return (await self._post(what, ack_ids=ids, **arguments)).count if ids else 0

    def _path(self, *names: str) -> str:
        return fields.path("streams", self.stream, "consumers", self.name, *names)

    async def _get(self, *names: str, query: Mapping[str, Any] | None = None) -> Answer:
        return await self._bus._client.call("GET", self._path(*names), query=query, repeatable=True)

    async def _post(self, *names: str, wait: float = 0.0, **given: Any) -> Answer:
        return await self._bus._client.call("POST", self._path(*names), body=fields.body(**given), wait=wait)


class AsyncHttpQueue(AsyncQueue, AsyncHttpConsumer):
    """Publish, receive and ack in one object, over HTTP; get one from `bus.queue`."""

    _bus: AsyncHttpBus

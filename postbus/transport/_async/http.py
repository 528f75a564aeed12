"""Operations over HTTP: requests to a server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from postbus.codec import answers, fields
from postbus.http.answer import Answer
from postbus.model.delivery import Batch, Deliveries, ack_ids
from postbus.model.duration import Duration, as_milliseconds, as_seconds
from postbus.model.errors import InvalidInput, Unavailable
from postbus.model.group import Claim, Fetched
from postbus.model.message import Message, Seq
from postbus.operations import deliveries, groups, messages
from postbus.operations.call import Call, Http
from postbus.transport._async.waiting import AsyncHttpWaiting

if TYPE_CHECKING:
    from postbus.db.own_connections import AsyncOwnConnection
    from postbus.http._async.client import AsyncHttpClient

_Result = TypeVar("_Result")
# The largest number of messages in a response. A larger request than the engine allows is passed on, so that it fails there.
_MOST_ANSWERED: Final = 1000
_MOST_RECEIVED: Final = 10_000
# The longest wait of one request: a proxy may close an idle connection.
_POLL_SECONDS: Final = 50.0


class AsyncHttpTransport:
    """Runs operations by requests to a server. A response holds at most 1,000 messages, even if more were requested."""

    def __init__(self, client: AsyncHttpClient) -> None:
        self._client = client

    @property
    def url(self) -> str:
        return self._client.url

    @property
    def token(self) -> str | None:
        return self._client.token

    async def close(self) -> None:
        await self._client.close()

    async def check(self) -> None:
        await self._client.check()

    async def fill_schedules(self) -> int:
        return 0

    async def run(self, call: Call[_Result], connection: AsyncOwnConnection | None = None) -> _Result:
        refuse(connection)
        http = _possible(call.http)
        return http.decode(await self._send(http, repeatable=call.repeatable))

    async def _send(self, http: Http[_Result], *, wait: float = 0.0, repeatable: bool = False) -> Answer:
        return await self._client.call(
            http.route.method,
            http.route.of(*http.names),
            query=None if http.query is None else fields.query(http.query),
            body=None if http.body is None else fields.body(http.body, nulls=http.nulls),
            wait=wait,
            repeatable=repeatable,
        )

    async def publish(
        self,
        stream: str,
        message: Message,
        ttl: Duration | None,
        deliver_at: datetime | None,
        delay: Duration | None,
        connection: AsyncOwnConnection | None,
    ) -> Seq:
        return (await self.publish_many(stream, [message], ttl, deliver_at, delay, connection))[0]

    async def publish_many(
        self,
        stream: str,
        batch: Sequence[Message],
        ttl: Duration | None,
        deliver_at: datetime | None,
        delay: Duration | None,
        connection: AsyncOwnConnection | None,
    ) -> list[Seq]:
        refuse(connection)
        if not batch:
            return []
        body = fields.new_messages(
            batch, ttl_ms=as_milliseconds(ttl), deliver_at=deliver_at, delay_ms=as_milliseconds(delay)
        )
        route = messages.PUBLISH
        # Never repeated: it might publish twice.
        answer = await self._client.call(route.method, route.of(stream), body=body)
        return answers.numbers(answer.data)

    async def receive(
        self,
        stream: str,
        consumer: str,
        max_messages: int,
        ack: Deliveries | None,
        wait: Duration,
        ack_wait: Duration | None,
        connection: AsyncOwnConnection | None,
    ) -> Batch:
        refuse(connection)
        until = time.monotonic() + (as_seconds(wait) or 0.0)
        batch = await self._receive_once(stream, consumer, max_messages, ack, until - time.monotonic(), ack_wait)
        acked_count = batch.acked_count
        try:
            while not batch and (left := until - time.monotonic()) > 0:
                batch = await self._receive_once(stream, consumer, max_messages, None, left, ack_wait)
        except Unavailable:
            # The ack did take effect, so the original error would be misleading.
            if not acked_count:
                raise
        return replace(batch, acked_count=acked_count)

    async def _receive_once(
        self,
        stream: str,
        consumer: str,
        max_messages: int,
        ack: Deliveries | None,
        wait: float,
        ack_wait: Duration | None,
    ) -> Batch:
        seconds = max(0.0, min(wait, _POLL_SECONDS))
        wanted = {
            "batch_size": min(max_messages, _MOST_ANSWERED) if max_messages <= _MOST_RECEIVED else max_messages,
            "wait_for": as_milliseconds(seconds) or None,
            "ack_wait_ms": as_milliseconds(ack_wait),
        }
        names = (stream, consumer)
        ids = [] if ack is None else ack_ids(ack)
        http = (
            Http(deliveries.ACK_AND_RECEIVE, names, _batch, body={**wanted, "ack_ids": ids})
            if ids
            else Http(deliveries.RECEIVE, names, _batch, query=wanted)
        )
        return http.decode(await self._send(http, wait=seconds))

    async def claim(
        self,
        stream: str,
        group: str,
        max_messages: int,
        *,
        lease: Duration | None,
        worker: str | None,
        wait: Duration,
        connection: AsyncOwnConnection | None,
    ) -> list[Claim]:
        refuse(connection)
        call = groups.claim(
            stream,
            group,
            max_messages=max_messages,
            lease=lease,
            worker=worker,
            wait_for=as_milliseconds(wait),
        )
        http = _possible(call.http)
        return http.decode(await self._send(http, wait=as_seconds(wait) or 0.0))

    async def claim_and_fetch(
        self,
        stream: str,
        group: str,
        max_messages: int,
        *,
        lease: Duration | None,
        finished: Sequence[Claim],
        wait: Duration,
    ) -> list[Fetched]:
        """Commit ranges, claim others and fetch them, by up to three requests."""
        if finished:
            tokens = [each.token for each in finished if each.token is not None]
            await self.run(groups.commit(stream, group, tokens, to_seq=None))
        claims = await self.claim(stream, group, max_messages, lease=lease, worker=None, wait=wait, connection=None)
        found = await self.run(groups.fetch(stream, group, claims)) if claims else []
        return [Fetched(claim, [each for each in found if _is_in(claim, each)]) for claim in claims]

    def batches(self, stream: str, consumer: str) -> AsyncHttpBatches:
        return AsyncHttpBatches(self, stream, consumer)

    def waiting(self, stream: str, consumer: str) -> AsyncHttpWaiting:
        return AsyncHttpWaiting()

    def transactions(self) -> NoReturn:
        raise InvalidInput(
            "transaction=True is not possible over HTTP: the server has transactions of its own",
            "connect to Postgres itself: postgresql://…",
        )

    def forget(self, stream: str) -> None:
        pass


class AsyncHttpBatches:
    """Receives the batches of one loop. The server answers when acks are durable."""

    def __init__(self, transport: AsyncHttpTransport, stream: str, consumer: str) -> None:
        self._transport = transport
        self._stream = stream
        self._consumer = consumer

    async def next(self, max_messages: int, ack_wait: Duration | None, done: Batch | None) -> Batch:
        return await self._transport.receive(self._stream, self._consumer, max_messages, done, 0, ack_wait, None)

    async def flush(self) -> None:
        pass


def refuse(connection: AsyncOwnConnection | None) -> None:
    """Refuse a connection of the caller: a server cannot take part in its transaction.

    Raises:
        InvalidInput: A connection was given.
    """
    if connection is not None:
        raise InvalidInput(
            "connection= is not possible over HTTP: the server has transactions of its own",
            "connect to Postgres itself: postgresql://…",
        )


def _possible(http: Http[_Result] | None) -> Http[_Result]:
    if http is None:
        raise InvalidInput(
            "this is not possible over HTTP",
            "connect to Postgres itself: postgresql://…",
        )
    return http


def _batch(answer: Answer) -> Batch:
    return answers.batch(answer.data, answer.count)


def _is_in(claim: Claim, message: Message) -> bool:
    return (
        message.partition == claim.partition
        and message.seq is not None
        and claim.from_seq <= message.seq <= claim.to_seq
    )

"""A group over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from postbus.bus._async.group import AsyncGroup
from postbus.bus._async.http_consumer import refuse
from postbus.codec import answers, fields, rows
from postbus.model.group import Claim, Claims, Fetched, as_list
from postbus.model.message import Message

if TYPE_CHECKING:
    from postbus.bus._async.http_bus import AsyncHttpBus
    from postbus.db._async.database import Connection
    from postbus.http._async.client import Answer
    from postbus.model.consumer import ConsumerStats, Start


class AsyncHttpGroup(AsyncGroup):
    """The same names as `AsyncGroup`, by requests to a server."""

    _bus: AsyncHttpBus

    async def claim(
        self,
        max_messages: int = 100,
        *,
        lease: float | timedelta | None = None,
        wait: float | timedelta = 0,
        worker: str | None = None,
        connection: Connection | None = None,
    ) -> list[Claim]:
        refuse(connection)
        wait_for = fields.ms(wait) or 0
        answer = await self._post(
            "claim",
            wait=wait_for / 1000,
            batch_size=max_messages,
            lease_ms=fields.ms(lease),
            worker=worker,
            wait_for=wait_for or None,
        )
        return [answers.claim(each) for each in answer.data]

    async def fetch(self, claims: Claims) -> list[Message]:
        ranges = [
            {"partition": each.partition, "from_seq": each.from_seq, "to_seq": each.to_seq} for each in as_list(claims)
        ]
        return answers.messages((await self._post("fetch", ranges=ranges)).data) if ranges else []

    async def receive(self, max_messages: int = 100, *, wait: float | timedelta = 0) -> list[Message]:
        return await self.fetch(await self.claim(max_messages, wait=wait))

    async def _take(
        self, max_messages: int, lease: timedelta, finished: Sequence[Claim], wait_seconds: float
    ) -> list[Fetched]:
        if finished:
            await self.commit(finished)
        claims = await self.claim(max_messages, lease=lease, wait=wait_seconds)
        messages = await self.fetch(claims)
        return [
            Fetched(claim, [each for each in messages if each.partition == claim.partition and _is_in(claim, each)])
            for claim in claims
        ]

    async def commit(self, claims: Claims, *, to_seq: int | None = None, connection: Connection | None = None) -> int:
        refuse(connection)
        return int((await self._post("commit", tokens=_tokens(claims), to_seq=to_seq)).data["count"])

    async def release(self, claims: Claims) -> int:
        return int((await self._post("release", tokens=_tokens(claims))).data["count"])

    async def extend(self, claims: Claims, lease: float | timedelta) -> int:
        return int((await self._post("extend", tokens=_tokens(claims), lease_ms=fields.ms(lease))).data["count"])

    async def seek(
        self, start: Start | None = None, *, from_seq: int | None = None, from_time: datetime | None = None
    ) -> int:
        answer = await self._post("seek", start=start, from_seq=from_seq, from_time=fields.time(from_time))
        return int(answer.data["position_seq"])

    async def stats(self) -> ConsumerStats:
        answer = await self._bus._client.call("GET", self._path("stats"), repeatable=True)
        return answers.consumer_stats(answer.data)

    async def pause(self) -> None:
        await self._bus.consumer(self.stream, self.name).pause()

    async def resume(self) -> None:
        await self._bus.consumer(self.stream, self.name).resume()

    async def drop(self) -> None:
        await self._bus._client.call("DELETE", self._path())

    async def _join(self, worker: str, session: timedelta) -> tuple[int, ...]:
        body = fields.body(session_ms=fields.ms(rows.seconds(session)))
        answer = await self._bus._client.call("PUT", self._path("workers", worker), body=body, repeatable=True)
        return tuple(answer.data["partitions"])

    async def _leave(self, worker: str) -> None:
        await self._bus._client.call("DELETE", self._path("workers", worker), repeatable=True)

    async def _post(self, verb: str, wait: float = 0.0, **given: Any) -> Answer:
        return await self._bus._client.call("POST", self._path(verb), body=fields.body(**given), wait=wait)

    def _path(self, *more: str) -> str:
        return fields.path("streams", self.stream, "groups", self.name, *more)


def _is_in(claim: Claim, message: Message) -> bool:
    return message.seq is not None and claim.from_seq <= message.seq <= claim.to_seq


def _tokens(claims: Claims) -> list[str]:
    return [each.token for each in as_list(claims) if each.token is not None]

"""Receives for webhook sources: verifies, publishes, and answers once that is durable, or in time for the sender to repeat.

Nothing of a request is parsed before it is verified, except the handshakes that come without a signature.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from postbus.model import errors
from postbus.model.webhook import ReceivingSource
from postbus.operations import webhook_sources as operations
from postbus.server import browsers
from postbus.server.auth import Bucket
from postbus.server.bodies import read_body
from postbus.server.coalescer import Coalescer
from postbus.server.connection import Connection
from postbus.server.fields import NAME_PATTERN
from postbus.server.metrics import Metrics
from postbus.server.problems import Problem
from postbus.server.requests import Request, Response
from postbus.server.settings import Settings
from postbus.webhooks import handshakes
from postbus.webhooks.events import Event, NotAcceptable, message_of, unpacked, wrapped
from postbus.webhooks.incoming import Incoming
from postbus.webhooks.verification import NotVerified, verify, verify_state

PREFIX: Final = "/api/webhook/"
PATH: Final = PREFIX + "{source}"
# Less than the most impatient sender waits, which is Slack with 3 s.
_PATIENCE: Final = 2.5
# How long a process remembers a source. Changes are noticed after that.
_SECONDS: Final = 1.0
_MOST_REMEMBERED: Final = 10_000
_LATER: Final = {"retry-after": "5"}
_ACCEPTED: Final = b'{"data":{"accepted":true,"duplicate":false}}'
_DUPLICATE: Final = b'{"data":{"accepted":true,"duplicate":true}}'
_is_name: Final = re.compile(NAME_PATTERN).fullmatch
_SHIELD: Final = {"x-content-type-options": "nosniff"}


@dataclass(slots=True)
class _Known:
    source: ReceivingSource | None
    until: float
    bucket: Bucket | None = None
    refused_count: int = 0
    noted_at: float = 0.0


class Receiving:
    """The webhook sources of a process of the server."""

    def __init__(self, settings: Settings, connection: Connection, coalescer: Coalescer, metrics: Metrics) -> None:
        self._settings = settings
        self._connection = connection
        self._coalescer = coalescer
        self._metrics = metrics
        self._gate = browsers.Gate(settings)
        self._known: dict[str, _Known] = {}
        self._noting: set[asyncio.Task[None]] = set()

    async def answer(self, request: Request) -> Response:
        """The answer to a request for a source."""
        name = request.parameters["source"]
        if not _is_name(name):
            raise _unknown(name)
        try:
            async with asyncio.timeout(_PATIENCE):
                known = await self._find(name)
        except (errors.Error, TimeoutError):
            raise Problem(503, "unavailable", "Postgres cannot be used now", headers=_LATER) from None
        if known.source is None:
            raise _unknown(name)
        try:
            return await self._receive(name, known.source, known, request)
        except Problem as problem:
            self._refused(name, known, problem)
            raise

    async def _find(self, name: str) -> _Known:
        known = self._known.get(name)
        if known is None or time.monotonic() >= known.until:
            source = await self._connection.bus._transport.run(operations.to_receive(name))
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            until = time.monotonic() + _SECONDS
            known = _Known(source, until) if known is None else replace(known, source=source, until=until)
            self._known[name] = known
        return known

    async def _receive(self, name: str, source: ReceivingSource, known: _Known, request: Request) -> Response:
        if source.kind == "none":
            # Nothing tells its sender from a page that a browser has open.
            problem = self._gate.refusal(request.method, request.headers, browsers.sender_of(request.headers))
            if problem is not None:
                raise problem
        if source.paused:
            raise Problem(503, "unavailable", "this source is paused", headers={"retry-after": "60"})
        _limit_rate(source, known)
        body = await read_body(request, min(source.max_body_bytes, self._settings.max_body_bytes))
        incoming = Incoming(request.method, request.query, request.headers, body)
        found = _event_of(source, incoming)
        if isinstance(found, Event):
            return await self._publish(name, source, found)
        self._metrics.count_webhook(name, "handshake")
        return Response(found.body, found.status, {**found.headers, **_SHIELD}, found.content_type)

    async def _publish(self, name: str, source: ReceivingSource, event: Event) -> Response:
        try:
            message = message_of(name, source, event)
            async with asyncio.timeout(_PATIENCE):
                try:
                    (seq,) = await self._coalescer.publish(source.stream, [message])
                except errors.InvalidInput:
                    if source.data_type != "json" or not event.is_json:
                        raise
                    # JSON that Postgres cannot hold, such as a very deep one.
                    (seq,) = await self._coalescer.publish(source.stream, [replace(message, data=wrapped(event))])
        except NotAcceptable as error:
            raise Problem(error.status, "not_acceptable", error.reason) from None
        except errors.TooLarge as error:
            raise Problem(413, "too_large", error.message) from None
        except errors.InvalidInput as error:
            raise Problem(400, "invalid_input", error.message) from None
        except (errors.Error, TimeoutError):
            # Postgres may be down, or the stream full or gone: the sender repeats it.
            raise Problem(503, "unavailable", "the event cannot be stored now", headers=_LATER) from None
        self._metrics.count_webhook(name, "duplicate" if seq.is_duplicate else "published")
        return Response(_DUPLICATE if seq.is_duplicate else _ACCEPTED)

    def _refused(self, name: str, known: _Known, problem: Problem) -> None:
        """Count and note what was refused, at most once a second: strangers must not make work for Postgres."""
        self._metrics.count_webhook(name, "unavailable" if problem.status == 503 else "refused")
        known.refused_count += 1
        now = time.monotonic()
        if known.source is None or now < known.noted_at + 1:
            return
        known.noted_at = now
        reason = problem.reason if isinstance(problem, _Unverified) else problem.summary
        call = operations.note_refusal(known.source.id, problem.status, reason, known.refused_count)
        known.refused_count = 0
        task = asyncio.create_task(self._note(call))
        self._noting.add(task)
        task.add_done_callback(self._noting.discard)

    async def _note(self, call: Any) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._connection.bus._transport.run(call)
        except (errors.Error, TimeoutError):
            return  # It is counted in the metrics, too.


class _Unverified(Problem):
    """A request that was not verified. Why is not for its sender."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            401, "not_verified", "the request is not signed as it should be", hint="see the source's settings"
        )
        self.reason = reason


def _unknown(name: str) -> Problem:
    return Problem(404, "not_found", f'webhook source "{name[:80]}" does not exist')


def _event_of(source: ReceivingSource, incoming: Incoming) -> Event | handshakes.Reply:
    """What a request brings, once it is verified, or the reply to a handshake."""
    reply = handshakes.before_verification(source.secrets, source.options, incoming)
    if reply is not None:
        return reply
    try:
        verify(source.kind, source.secrets, source.options, incoming, time.time())
        reply = handshakes.after_verification(source.kind, source.secrets, source.options, incoming)
        if reply is not None:
            return reply
        event = unpacked(incoming, source.max_body_bytes)
        verify_state(source.options, event.value)
    except NotVerified as error:
        raise _Unverified(str(error)) from None
    except NotAcceptable as error:
        raise Problem(error.status, "not_acceptable", error.reason) from None
    return event


def _limit_rate(source: ReceivingSource, known: _Known) -> None:
    if source.max_rate is None:
        return
    now = time.monotonic()
    if known.bucket is None or known.bucket.rate != source.max_rate:
        known.bucket = Bucket(source.max_rate, now)
    wait = known.bucket.take(now)
    if wait > 0:
        summary = f"this source accepts {source.max_rate:g} requests per second"
        raise Problem(429, "rate_limited", summary, headers={"retry-after": str(max(1, round(wait)))})


def description(parameters: list[dict[str, Any]], error: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """The path of webhook sources in the API's description."""
    accepted = {
        "type": "object",
        "properties": {
            "data": {
                "type": "object",
                "properties": {"accepted": {"type": "boolean"}, "duplicate": {"type": "boolean"}},
                "required": ["accepted", "duplicate"],
            }
        },
        "required": ["data"],
    }
    return {
        "post": {
            "operationId": "receive_webhook",
            "summary": "Receive a webhook: verify it, publish it, and answer once that is durable.",
            "description": "It takes no token: the signature of the source's kind shows who sends. Handshakes are answered "
            "as their senders expect.",
            "parameters": parameters,
            "requestBody": {"required": True, "content": {"*/*": {"schema": {}}}},
            "responses": {
                "200": {"description": "It is durable.", "content": {"application/json": {"schema": accepted}}},
                **{str(status): error(status) for status in (400, 401, 403, 404, 408, 413, 415, 429, 503)},
            },
        }
    }

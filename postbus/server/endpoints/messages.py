"""Messages: publish and read."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus import tracing
from postbus.model.consumer import ConsumerInfo
from postbus.model.message import Message
from postbus.model.message import Seq as PublishedSeq
from postbus.model.patterns import matches
from postbus.operations import messages
from postbus.operations.call import Route
from postbus.server import problems, responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import (
    Age,
    Key,
    KeyPattern,
    Limit,
    NoNul,
    Priority,
    Resume,
    Seq,
    Time,
    given,
    moment,
    seconds,
)
from postbus.server.problems import Problem
from postbus.server.responses import Data, Encoding, PageOf

endpoints = Endpoints()

# The search for a rare key in a long stream stops after this many seconds.
_SEARCH_SECONDS = 10.0
BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_TRACE_HEADERS = ("traceparent", "tracestate")

DedupId = Annotated[str, Meta(pattern=r"^[^\x00]+$", max_length=255)]


class NewMessage(Struct, forbid_unknown_fields=True):
    """`data` is any JSON value; for a bytes stream, base64 with `encoding`. A null key puts the message in any partition."""

    schema_extra: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"encoding": {"const": "base64"}}, "required": ["encoding"]},
        "then": {"properties": {"data": {"type": "string", "pattern": BASE64}}},
    }

    key: Key | None
    data: Any
    headers: dict[NoNul, NoNul] | None = None
    encoding: Encoding | None = None
    dedup_id: DedupId | None = None
    priority: Priority = 4


class NewMessages(Struct, forbid_unknown_fields=True):
    """Either all messages are published or none. With `deliver_at` or `delay_ms`, they are scheduled."""

    schema_extra: ClassVar[dict[str, Any]] = {"not": {"required": ["deliver_at", "delay_ms"]}}

    messages: Annotated[list[NewMessage], Meta(min_length=1, max_length=10_000)]
    ttl_ms: Annotated[int, Meta(ge=1, le=3650 * 24 * 60 * 60 * 1000)] | UnsetType = UNSET
    deliver_at: Time | UnsetType = UNSET
    delay_ms: Age | UnsetType = UNSET


class Reading(Struct):
    limit: Limit = 100
    sort: Literal["seq_asc", "seq_desc"] = "seq_asc"
    key: Key | UnsetType = UNSET
    key_pattern: KeyPattern | UnsetType = UNSET
    from_seq: Seq | UnsetType = UNSET
    to_seq: Seq | UnsetType = UNSET
    from_time: Time | UnsetType = UNSET
    to_time: Time | UnsetType = UNSET
    partition: Annotated[int, Meta(ge=0, le=2**31 - 1)] | UnsetType = UNSET
    resume: Resume | UnsetType = UNSET


@endpoints.add(messages.PUBLISH)
async def send_messages(call: Call, body: NewMessages) -> Data[responses.Published]:
    """Publish messages."""
    if any(each.encoding is not None for each in body.messages):
        await _demand_bytes(call)
    messages = _messages(body.messages, _trace(call))
    if body.deliver_at is not UNSET and body.delay_ms is not UNSET:
        raise problems.invalid("deliver_at", "cannot be combined with delay_ms")
    later = (moment(body.deliver_at), seconds(body.delay_ms))
    if body.ttl_ms is UNSET and later == (None, None):
        seqs = await _publish(call, messages)
        answer = responses.published(seqs)
        call.state.metrics.count_published(call.stream, answer.published)
        return Data(answer)
    deliver_at, delay = later
    ids = await call.bus.publish_many(
        call.stream, messages, ttl=seconds(body.ttl_ms), deliver_at=deliver_at, delay=delay
    )
    answer = responses.published(ids, is_scheduled=later != (None, None))
    call.state.metrics.count_published(call.stream, answer.published)
    return Data(answer)


@endpoints.add(messages.READ)
async def read_messages(call: Call, query: Reading) -> PageOf[responses.StoredMessage]:
    """Read messages of a stream, without a consumer."""
    page = await call.bus.read(
        call.stream,
        from_seq=given(query.from_seq),
        to_seq=given(query.to_seq),
        from_time=moment(query.from_time),
        to_time=moment(query.to_time),
        key=given(query.key),
        key_pattern=given(query.key_pattern),
        partition=given(query.partition),
        max_messages=query.limit,
        backwards=query.sort == "seq_desc",
        resume=given(query.resume),
    )
    stream_id = await call.stream_id()
    return PageOf([responses.message(each, stream_id) for each in page], page.resume)


@endpoints.add(Route("GET", "/api/streams/{stream}/messages/{key}", "consume"))
async def get_message(call: Call) -> Data[responses.StoredMessage]:
    """Get the newest message with a key."""
    return Data(responses.message(await _newest(call, call.request.parameters["key"]), await call.stream_id()))


@endpoints.add(Route("GET", "/api/streams/{stream}/messages/{key}/consumer_info", "manage"))
async def get_message_consumer_info(call: Call) -> Data[responses.MessageConsumers]:
    """Get the newest message with a key, and its state for each consumer whose filter may pass it."""
    message = await _newest(call, call.request.parameters["key"])
    consumers = [
        await _standing(call, consumer, message.seq or 0)
        for consumer in await call.bus.list_consumers(call.stream)
        if consumer.filter_key_pattern is None or matches(consumer.filter_key_pattern, message.key or "")
    ]
    return Data(responses.MessageConsumers(responses.message(message, await call.stream_id()), consumers))


async def _standing(call: Call, consumer: ConsumerInfo, seq: int) -> responses.MessageConsumer:
    return responses.message_consumer(consumer, await call.bus.consumer(call.stream, consumer.name).peek_at(seq))


async def _demand_bytes(call: Call) -> None:
    data_type = (await call.bus.stream_info(call.stream)).data_type
    if data_type != "bytes":
        # The code is the library's. The status is not 400, since no schema of the request can express this rule.
        summary = f'stream "{call.stream}" holds {data_type}, not bytes'
        raise Problem(409, "invalid_input", summary, hint="leave out encoding")


async def _newest(call: Call, key: str) -> Message:
    resume: str | None = None
    end = time.monotonic() + _SEARCH_SECONDS
    while time.monotonic() < end:
        page = await call.bus.read(call.stream, key=key, max_messages=1, backwards=True, resume=resume)
        if page:
            return page[0]
        if page.resume is None:
            raise Problem(404, "not_found", f'stream "{call.stream}" has no message with key "{key}"')
        resume = page.resume
    raise Problem(503, "unavailable", "the search took too long", hint="read with from_seq or from_time instead")


async def _publish(call: Call, messages: Sequence[Message]) -> list[PublishedSeq]:
    if not tracing.is_on():
        return await call.state.coalescer.publish(call.stream, messages)
    with tracing.publishing(call.stream, messages) as carrying:
        return await call.state.coalescer.publish(call.stream, carrying)


def _messages(bodies: Sequence[NewMessage], trace: dict[str, str]) -> list[Message]:
    return [
        Message(
            key=body.key,
            data=body.data if body.encoding is None else decoded(f"messages[{place}].data", body.data),
            headers=({**trace, **(body.headers or {})} if trace else body.headers) or None,
            dedup_id=body.dedup_id,
            priority=body.priority,
        )
        for place, body in enumerate(bodies)
    ]


def decoded(field: str, data: Any) -> bytes:
    """The bytes of base64."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise problems.invalid(field, "is not base64") from None


def _trace(call: Call) -> dict[str, str]:
    """Add the trace of the request to its messages, so that receivers can continue it.

    With OpenTelemetry, it is the trace of a span for the publish.
    """
    if b"traceparent" not in call.request.headers or tracing.is_on():
        return {}
    found = {name: call.request.header(name.encode()) for name in _TRACE_HEADERS}
    return {name: value for name, value in found.items() if value is not None}

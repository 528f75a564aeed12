"""Deliveries: receive, ack, nack, defer, extend, terminate."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.model.consumer import Peeked, State
from postbus.model.delivery import Batch
from postbus.operations import consumers, deliveries
from postbus.server import problems, responses
from postbus.server.endpoint import Call, Endpoints
from postbus.server.endpoints.messages import BASE64, decoded
from postbus.server.fields import (
    AckIds,
    Delay,
    KeyPattern,
    Limit,
    LongDelay,
    Milliseconds,
    NoNul,
    Seq,
    Time,
    WaitFor,
    given,
    moment,
    seconds,
)
from postbus.server.metrics import Settled
from postbus.server.responses import Data, Success

endpoints = Endpoints()


class Receive(Struct, forbid_unknown_fields=True):
    """If there is no message, the request waits for `wait_for` milliseconds. `auto_ack` acks the messages at once."""

    batch_size: Annotated[int, Meta(ge=1, le=1000)] = 1
    wait_for: WaitFor = 0
    auto_ack: bool = False
    ack_wait_ms: Milliseconds | UnsetType = UNSET


class AckAndReceive(Receive, forbid_unknown_fields=True):
    """Acks `ack_ids` in the same round trip, before it receives the next messages."""

    ack_ids: AckIds | UnsetType = UNSET


class Acked(Struct, forbid_unknown_fields=True):
    ack_ids: AckIds


class Nacked(Struct, forbid_unknown_fields=True):
    """The messages are delivered again after `delay_ms`. Without it, at once or by the consumer's backoff.

    `untried` means that no handler has tried them, so this delivery does not count as an attempt.
    """

    ack_ids: AckIds
    delay_ms: Delay | UnsetType = UNSET
    reason: NoNul | UnsetType = UNSET
    untried: bool = False


class Deferred(Struct, forbid_unknown_fields=True):
    """The messages are available after `delay_ms`, or from `until` on; without either, at once.

    `state` is saved with them and comes with their next deliveries: any JSON value, up to 64 KiB. Left out, the last one is kept;
    null removes it. With `state_encoding` “base64” it is bytes.
    """

    schema_extra: ClassVar[dict[str, Any]] = {
        "not": {"required": ["until", "delay_ms"]},
        "if": {"required": ["state_encoding"]},
        "then": {"properties": {"state": {"type": "string", "pattern": BASE64}}},
    }

    ack_ids: AckIds
    delay_ms: LongDelay | UnsetType = UNSET
    until: Time | UnsetType = UNSET
    state: Any | UnsetType = UNSET
    state_encoding: Literal["base64"] | UnsetType = UNSET


class Extended(Struct, forbid_unknown_fields=True):
    """Leases the deliveries for `ack_wait_ms` from now. Without it, for the consumer's `ack_wait_ms`."""

    ack_ids: AckIds
    ack_wait_ms: Milliseconds | UnsetType = UNSET
    shorten: bool = False


class Terminated(Struct, forbid_unknown_fields=True):
    ack_ids: AckIds
    reason: NoNul | UnsetType = UNSET


class Peek(Struct):
    """`visible` selects messages that can, or cannot, be received now. `state` is finer; “any” includes dead letters."""

    limit: Limit = 100
    sort: Literal["seq_asc", "seq_desc"] = "seq_asc"
    visible: bool | UnsetType = UNSET
    state: responses.MessageState | Literal["any"] | UnsetType = UNSET
    key_pattern: KeyPattern | UnsetType = UNSET
    after_seq: Seq = 0


class PeekAt(Struct):
    """With `wait_for`, in milliseconds, the answer waits until the consumer has finished the message or made it a dead letter."""

    seq: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    wait_for: WaitFor = 0


@endpoints.add(deliveries.RECEIVE, leases=True)
async def receive_messages(call: Call, query: Receive) -> Data[list[responses.Received]]:
    """Receive messages. Each is leased until it is acked or its lease expires."""
    return await _receive(call, query)


@endpoints.add(deliveries.ACK_AND_RECEIVE, leases=True)
async def ack_and_receive_messages(
    call: Call, query: Receive, body: AckAndReceive | None = None
) -> Data[list[responses.Received]]:
    """Receive messages, with parameters in a body or in the query."""
    return await _receive(call, query if body is None else body)


@endpoints.add(deliveries.ACK)
async def ack_messages(call: Call, body: Acked) -> Success:
    """Ack deliveries. Unknown ids and ended deliveries are ignored."""
    return _settled(call, "acked", await call.reader.ack(body.ack_ids))


@endpoints.add(deliveries.NACK)
async def nack_messages(call: Call, body: Nacked) -> Success:
    """Nack deliveries: their messages are delivered again."""
    # Sequin's nack redelivers at once, unless the consumer has a backoff.
    count = await call.reader.nack(
        body.ack_ids, delay=seconds(body.delay_ms), reason=given(body.reason), untried=body.untried
    )
    return _settled(call, "failed", count)


@endpoints.add(deliveries.DEFER)
async def defer_messages(call: Call, body: Deferred) -> Success:
    """Defer deliveries: their messages are delivered again later, with a saved state."""
    if body.until is not UNSET and body.delay_ms is not UNSET:
        raise problems.invalid("until", "cannot be combined with delay_ms")
    count = await call.reader.defer(
        body.ack_ids, delay=seconds(body.delay_ms), until=moment(body.until), state=_state(body)
    )
    return _settled(call, None, count)


@endpoints.add(deliveries.EXTEND)
async def extend_messages(call: Call, body: Extended) -> Success:
    """Extend the leases of deliveries."""
    count = await call.reader.extend(body.ack_ids, ack_wait=seconds(body.ack_wait_ms), shorten=body.shorten)
    return _settled(call, None, count)


@endpoints.add(deliveries.TERMINATE)
async def terminate_messages(call: Call, body: Terminated) -> Success:
    """Make deliveries dead letters at once."""
    return _settled(call, "terminated", await call.reader.terminate(body.ack_ids, reason=given(body.reason)))


@endpoints.add(consumers.PEEK)
async def peek_messages(call: Call, query: Peek) -> Data[list[responses.PeekedMessage]]:
    """List messages and their states without changing them."""
    found = await (_newest(call, query) if query.sort == "seq_desc" else _peek(call, query, query.after_seq))
    stream_id = await call.stream_id()
    return Data([responses.peeked(each, stream_id) for each in found])


@endpoints.add(consumers.PEEK_AT)
async def peek_message(call: Call, query: PeekAt) -> Data[responses.PeekedMessage | None]:
    """Get a message and its state, by its seq; null if the consumer has finished or skipped it."""
    if query.wait_for:
        async with call.long_poll() as poll:
            await call.state.long_polls.until_done(call.reader, query.seq, wait=query.wait_for / 1000, poll=poll)
    found = await call.reader.peek_at(query.seq)
    return Data(None if found is None else responses.peeked(found, await call.stream_id()))


def _state(body: Deferred) -> Any:
    """The state to save; `...` keeps the last one."""
    if body.state is UNSET:
        return ...
    return body.state if body.state_encoding is UNSET else decoded("state", body.state)


def _settled(call: Call, outcome: Settled | None, count: int) -> Success:
    if outcome is not None:
        call.state.metrics.count_settled(outcome, call.stream, call.consumer, count)
    call.headers["x-postbus-count"] = str(count)
    return Success()


async def _receive(call: Call, wanted: Receive) -> Data[list[responses.Received]]:
    reader = call.reader
    stream_id = await call.stream_id()
    ack_wait = seconds(wanted.ack_wait_ms)
    acked = given(wanted.ack_ids) if isinstance(wanted, AckAndReceive) else None
    batch = Batch(())
    if acked or not wanted.wait_for or not call.state.long_polls.is_crowded(call.stream, call.consumer):
        with call.state.long_polls.looking(call.stream, call.consumer):
            batch = await reader.receive(wanted.batch_size, ack=acked, ack_wait=ack_wait)
    acked_count = batch.acked_count
    if not batch and wanted.wait_for:
        async with call.long_poll() as poll:
            batch = await call.state.long_polls.receive(
                reader, wanted.batch_size, wait=wanted.wait_for / 1000, ack_wait=ack_wait, poll=poll
            )
            if batch and poll.is_abandoned:
                batch = await _give_back(call, batch)
    if batch and wanted.auto_ack:
        call.state.metrics.count_settled("acked", call.stream, call.consumer, await reader.ack(batch))
    if acked is not None:
        call.state.metrics.count_settled("acked", call.stream, call.consumer, acked_count)
        call.headers["x-postbus-count"] = str(acked_count)
    call.state.metrics.count_received(call.stream, call.consumer, len(batch))
    return Data(responses.received(batch, stream_id))


async def _give_back(call: Call, batch: Batch) -> Batch:
    """The client is gone: release its messages now, instead of when their leases expire."""
    await call.reader.nack(batch, reason="the receiver disconnected", untried=True)
    return Batch(())


async def _peek(call: Call, query: Peek, after_seq: int) -> list[Peeked]:
    """Messages of the requested states, in order."""
    found: list[Peeked] = []
    for state in _states(query):
        found += await call.reader.peek(
            state=state, key_pattern=given(query.key_pattern), after_seq=after_seq, max_messages=query.limit
        )
    shown = sorted((each for each in map(_as_seen_now, found) if _is_wanted(query, each)), key=lambda each: each.seq)
    return shown[: query.limit]


async def _newest(call: Call, query: Peek) -> list[Peeked]:
    """The newest messages first: search further and further back until there are enough."""
    horizon = await call.bus.horizon(call.stream)
    span = 2 * query.limit
    while True:
        start = max(query.after_seq, horizon - span)
        found = await _everything(call, query, start)
        if len(found) >= query.limit or start == query.after_seq or start <= 0:
            return found[: -query.limit - 1 : -1]
        span *= 8


async def _everything(call: Call, query: Peek, after_seq: int) -> list[Peeked]:
    found: list[Peeked] = []
    while page := await _peek(call, query, found[-1].seq if found else after_seq):
        found += page
        if len(page) < query.limit:
            break
    return found


def _states(query: Peek) -> tuple[State | None, ...]:
    if query.state == "any":
        return (None,)
    if query.state is not UNSET:
        return (query.state,)
    # Available messages can be many; max_ack_pending limits all others.
    return ("delivered", "waiting") if query.visible is False else ("available", "delivered", "waiting")


def _as_seen_now(found: Peeked) -> Peeked:
    """A message whose retry is due counts as available, even before the next sweep."""
    if found.state != "waiting" or found.until is None or found.until > datetime.now(UTC):
        return found
    return Peeked(
        seq=found.seq,
        partition=found.partition,
        key=found.key,
        data=found.data,
        headers=found.headers,
        published_at=found.published_at,
        state="available",
        attempts=found.attempts,
        until=None,
        reason=found.reason,
        last_delivered_at=found.last_delivered_at,
        deferrals=found.deferrals,
        saved_state=found.saved_state,
    )


def _is_wanted(query: Peek, found: Peeked) -> bool:
    return query.visible is UNSET or (found.state == "available") == query.visible

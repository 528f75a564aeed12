"""Responses about consumers, and about messages as consumers see them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from postbus.model.consumer import (
    ConsumerInfo,
    ConsumerStats,
    DeadLetter,
    HistoryEntry,
    Outcome,
    Peeked,
)
from postbus.model.delivery import Delivery
from postbus.model.settings import ConsumerSettings
from postbus.server.responses.common import ms, required_ms, utc
from postbus.server.responses.messages import Encoding, StoredMessage, content, message
from postbus.server.setting_fields import response_of, setting_values

MessageState = Literal["available", "delivered", "waiting", "dead"]


class Received(msgspec.Struct, omit_defaults=True):
    """`is_last_attempt`: the consumer's `max_deliver` allows no further one. If it fails, the message becomes a dead letter.

    `deferrals` and `state` are there when the message was deferred. `state_encoding` is “base64” if the state is encoded bytes.
    """

    ack_id: str
    attempt: int
    is_last_attempt: bool
    message: StoredMessage
    deferrals: int = 0
    state: Any = None
    state_encoding: Encoding | None = None


class PeekInfo(msgspec.Struct, omit_defaults=True):
    """`deferrals` and `saved_state` are there once it was deferred; `state_encoding` is “base64” if that is encoded bytes."""

    ack_id: str | None
    state: MessageState
    deliver_count: int
    not_visible_until: datetime | None
    reason: str | None
    last_delivered_at: datetime | None
    deferrals: int = 0
    saved_state: Any = None
    state_encoding: Encoding | None = None


class PeekedMessage(msgspec.Struct):
    message: StoredMessage
    info: PeekInfo


class MessageConsumer(msgspec.Struct):
    """The state of a message for a consumer. “done”: the consumer has finished it, or skipped it by its filter or position."""

    consumer_id: str
    consumer_name: str
    consumer_filter_key_pattern: str | None
    state: Literal["available", "delivered", "waiting", "dead", "done"]
    deliver_count: int | None
    not_visible_until: datetime | None


class MessageConsumers(msgspec.Struct):
    message: StoredMessage
    consumer_info: list[MessageConsumer]


class DeadMessage(msgspec.Struct, omit_defaults=True):
    """`deferrals` and `saved_state` are there once it was deferred; `state_encoding` is “base64” if that is encoded bytes."""

    message: StoredMessage
    deliver_count: int
    reason: str | None
    died_at: datetime
    deferrals: int = 0
    saved_state: Any = None
    state_encoding: Encoding | None = None


class PastDelivery(msgspec.Struct):
    """`message` is null if the stream no longer has it. `last_error` of an acked message says why it failed before."""

    seq: int
    partition: int
    message: StoredMessage | None
    outcome: Outcome
    attempt: int
    received_at: datetime
    finished_at: datetime
    duration_ms: int
    last_error: str | None


class Consumer(msgspec.Struct):
    id: str
    name: str
    stream: str
    stream_id: str
    kind: Literal["pull"]
    status: Literal["active", "disabled"]
    filter_key_pattern: str | None
    filter_headers: dict[str, str] | None
    filter_headers_not: dict[str, str] | None
    filter_data: str | None
    backoff_ms: list[int]
    backoff_factor: float | None
    backoff_cap_ms: int | None
    backoff_jitter: float
    is_group: bool
    inserted_at: datetime
    updated_at: datetime


if not TYPE_CHECKING:
    Consumer = response_of(Consumer, ConsumerSettings)


class PartitionPlace(msgspec.Struct):
    partition: int
    position_seq: int
    lag_estimate: int
    oldest_unread_at: datetime | None
    in_flight: int


class ConsumerPlace(msgspec.Struct):
    """`backlog` is what the consumer has not finished: not delivered, in flight, waiting for redelivery or parked behind a key.

    It is exact up to 1,000 messages that are not delivered. Beyond, and for a filter by data, it is an estimate, and
    `backlog_is_exact` is false.

    `by_priority`: how many messages are not delivered or wait, by each priority in use.
    """

    backlog: int
    backlog_is_exact: bool
    in_flight: int
    waiting: int
    dead: int
    lag_estimate: int
    oldest_unread_at: datetime | None
    oldest_in_flight_at: datetime | None
    horizon_seq: int
    expired: int
    missed_estimate: int
    rate_estimate: float | None
    partitions: list[PartitionPlace]
    by_priority: dict[int, int]


def received(deliveries: Sequence[Delivery], stream_id: str) -> list[Received]:
    """In order of seq, which is also the order within each key."""
    return [_received(each, stream_id) for each in sorted(deliveries, key=lambda each: each.seq)]


def _received(each: Delivery, stream_id: str) -> Received:
    shown = Received(each.ack_id, each.attempt, each.is_last_attempt, message(each, stream_id))
    if each.deferrals:
        shown.deferrals = each.deferrals
        shown.state, shown.state_encoding = _saved(each.state)
    return shown


def peeked(found: Peeked, stream_id: str) -> PeekedMessage:
    saved_state, encoding = _saved(found.saved_state)
    info = PeekInfo(
        ack_id=found.ack_id,
        state=found.state,
        deliver_count=found.attempts,
        not_visible_until=None if found.until is None else utc(found.until),
        reason=found.reason,
        last_delivered_at=None if found.last_delivered_at is None else utc(found.last_delivered_at),
        deferrals=found.deferrals,
        saved_state=saved_state,
        state_encoding=encoding,
    )
    return PeekedMessage(message=message(found, stream_id), info=info)


def message_consumer(info: ConsumerInfo, found: Peeked | None) -> MessageConsumer:
    return MessageConsumer(
        consumer_id=str(info.id),
        consumer_name=info.name,
        consumer_filter_key_pattern=info.filter_key_pattern,
        state="done" if found is None else found.state,
        deliver_count=None if found is None else found.attempts,
        not_visible_until=None if found is None or found.until is None else utc(found.until),
    )


def dead(letter: DeadLetter, stream_id: str) -> DeadMessage:
    saved_state, encoding = _saved(letter.saved_state)
    return DeadMessage(
        message=message(letter, stream_id),
        deliver_count=letter.attempts,
        reason=letter.reason,
        died_at=utc(letter.died_at),
        deferrals=letter.deferrals,
        saved_state=saved_state,
        state_encoding=encoding,
    )


def _saved(state: Any) -> tuple[Any, Encoding | None]:
    """What was saved with a message, as it is sent."""
    if state is None:
        return None, None
    data, _, encoding = content(state)
    return data, encoding


def past_delivery(entry: HistoryEntry, stream_id: str) -> PastDelivery:
    return PastDelivery(
        seq=entry.seq,
        partition=entry.partition,
        message=None if entry.published_at is None else message(entry, stream_id),
        outcome=entry.outcome,
        attempt=entry.attempt,
        received_at=utc(entry.received_at),
        finished_at=utc(entry.finished_at),
        duration_ms=required_ms(entry.duration),
        last_error=entry.last_error,
    )


def consumer(info: ConsumerInfo, stream_id: str) -> Consumer:
    return Consumer(
        id=str(info.id),
        name=info.name,
        stream=info.stream,
        stream_id=stream_id,
        kind="pull",
        status="disabled" if info.paused else "active",
        filter_key_pattern=info.filter_key_pattern,
        filter_headers=None if info.filter_headers is None else dict(info.filter_headers),
        filter_headers_not=None if info.filter_headers_not is None else dict(info.filter_headers_not),
        filter_data=info.filter_data,
        backoff_ms=[required_ms(delay) for delay in info.backoff],
        backoff_factor=info.backoff_factor,
        backoff_cap_ms=ms(info.backoff_cap),
        backoff_jitter=info.backoff_jitter,
        is_group=info.is_group,
        inserted_at=utc(info.created_at),
        updated_at=utc(info.created_at),
        **setting_values(ConsumerSettings, info),
    )


def consumer_place(stats: ConsumerStats) -> ConsumerPlace:
    return ConsumerPlace(
        backlog=stats.backlog,
        backlog_is_exact=stats.backlog_is_exact,
        horizon_seq=stats.horizon_seq,
        lag_estimate=stats.lag_estimate,
        oldest_unread_at=stats.oldest_unread_at,
        in_flight=stats.in_flight,
        oldest_in_flight_at=stats.oldest_in_flight_at,
        waiting=stats.waiting,
        dead=stats.dead,
        expired=stats.expired,
        missed_estimate=stats.missed_estimate,
        rate_estimate=stats.rate_estimate,
        partitions=[
            PartitionPlace(
                partition=each.partition,
                position_seq=each.position_seq,
                lag_estimate=each.lag_estimate,
                oldest_unread_at=each.oldest_unread_at,
                in_flight=each.in_flight,
            )
            for each in stats.partitions
        ],
        by_priority=dict(stats.by_priority),
    )

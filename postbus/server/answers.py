"""What the server answers, in Sequin's words: `inserted_at` here is `published_at` or `created_at` elsewhere."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, TypeVar

import msgspec

from postbus.model.consumer import (
    ConsumerInfo,
    ConsumerStats,
    DeadLetter,
    HistoryEntry,
    OnDead,
    OnExpired,
    Ordering,
    Outcome,
    Peeked,
)
from postbus.model.delivery import Delivery
from postbus.model.message import Message, Scheduled, Seq
from postbus.model.stream import DataType, HorizonHolder, StreamInfo, WhenFull

_Item = TypeVar("_Item")
Encoding = Literal["base64"]
MessageState = Literal["available", "delivered", "waiting", "dead"]


class Data(msgspec.Struct, Generic[_Item]):
    data: _Item


class PageOf(msgspec.Struct, Generic[_Item]):
    """Some of what there is. `resume`, given to the next request, goes on; null is the end."""

    data: list[_Item]
    resume: str | None


class Success(msgspec.Struct):
    """For how many it was so is in the header X-Postbus-Count; what was settled before, or never delivered, is not counted."""

    success: bool = True


class Deleted(msgspec.Struct):
    id: str
    name: str
    deleted: bool = True


class Count(msgspec.Struct):
    count: int


class Published(msgspec.Struct, omit_defaults=True):
    """`seqs` are the messages' numbers, or, when they were scheduled, `scheduled_ids`.

    `duplicates` are the places, from 0, of messages that were not published, because their `dedup_id` was before: their seqs are
    those of the messages that were.
    """

    published: int
    seqs: list[int] | None = None
    scheduled_ids: list[int] | None = None
    duplicates: list[int] | None = None


class StreamSize(msgspec.Struct):
    """`message_count` is an estimate, a second or so late."""

    message_count: int
    storage_size: int


class Stream(msgspec.Struct):
    id: str
    name: str
    data_type: DataType
    partitions: int
    max_message_bytes: int
    segment_bytes: int
    segment_age_ms: int
    retain_up_to_ms: int | None
    retain_at_least_ms: int | None
    max_messages: int | None
    max_storage: int | None
    until_acked: bool
    when_full: WhenFull
    dedup_window_ms: int | None
    one_message_per_key: bool
    process_unmodified: bool
    is_full: bool
    segment_count: int
    start_seq: int
    last_seq: int
    stats: StreamSize
    inserted_at: datetime
    updated_at: datetime


class HeldAt(msgspec.Struct):
    """An open transaction that has published, so that readers cannot go on past it."""

    seq: int
    held_for_ms: int | None
    transaction_started_at: datetime | None
    pid: int | None
    user_name: str | None
    application_name: str | None
    state: str | None
    prepared_transaction: str | None


class StreamStats(msgspec.Struct):
    horizon_seq: int
    last_seq: int
    publish_rate_estimate: float
    holders: list[HeldAt]


class StoredMessage(msgspec.Struct, omit_defaults=True):
    """`encoding` is “base64” where data stands for bytes."""

    key: str | None
    stream_id: str
    data: Any
    data_hash: str
    seq: int
    partition: int | None
    inserted_at: datetime | None
    updated_at: datetime | None
    headers: dict[str, str] | None = None
    encoding: Encoding | None = None


class Received(msgspec.Struct):
    ack_id: str
    attempt: int
    message: StoredMessage


class PeekInfo(msgspec.Struct):
    ack_id: str | None
    state: MessageState
    deliver_count: int
    not_visible_until: datetime | None
    reason: str | None


class PeekedMessage(msgspec.Struct):
    message: StoredMessage
    info: PeekInfo


class MessageConsumer(msgspec.Struct):
    """How a consumer stands to a message. “done”: it has finished it, or passed over it by its filter or position."""

    consumer_id: str
    consumer_name: str
    consumer_filter_key_pattern: str | None
    state: Literal["available", "delivered", "waiting", "dead", "done"]
    deliver_count: int | None
    not_visible_until: datetime | None


class MessageConsumers(msgspec.Struct):
    message: StoredMessage
    consumer_info: list[MessageConsumer]


class DeadMessage(msgspec.Struct):
    message: StoredMessage
    deliver_count: int
    reason: str | None
    died_at: datetime


class PastDelivery(msgspec.Struct):
    """`message` is null when it is gone from the stream. `last_error` of an acked message is why it failed before."""

    seq: int
    partition: int
    message: StoredMessage | None
    outcome: Outcome
    attempt: int
    received_at: datetime
    finished_at: datetime
    duration_ms: int
    last_error: str | None


class ScheduledMessage(msgspec.Struct, omit_defaults=True):
    id: int
    deliver_at: datetime
    scheduled_at: datetime
    ttl_ms: int | None
    key: str | None
    data: Any
    headers: dict[str, str] | None = None
    encoding: Encoding | None = None


class Consumer(msgspec.Struct):
    id: str
    name: str
    stream: str
    stream_id: str
    kind: Literal["pull"]
    status: Literal["active", "disabled"]
    ack_wait_ms: int
    max_ack_pending: int
    max_deliver: int | None
    max_waiting: int
    filter_key_pattern: str | None
    filter_headers: dict[str, str] | None
    filter_headers_not: dict[str, str] | None
    filter_data: str | None
    order: Ordering
    max_per_key: int | None
    backoff_ms: list[int]
    backoff_factor: float | None
    backoff_cap_ms: int | None
    backoff_jitter: float
    retain_dead_ms: int | None
    on_dead: OnDead
    on_expired: OnExpired
    keep_unread: bool
    expire_after_ms: int | None
    keep_history_ms: int | None
    is_group: bool
    inserted_at: datetime
    updated_at: datetime


class PartitionPlace(msgspec.Struct):
    partition: int
    position_seq: int
    lag_estimate: int
    oldest_unread_at: datetime | None
    in_flight: int


class ConsumerPlace(msgspec.Struct):
    horizon_seq: int
    lag_estimate: int
    oldest_unread_at: datetime | None
    in_flight: int
    oldest_in_flight_at: datetime | None
    waiting: int
    dead: int
    expired: int
    missed_estimate: int
    rate_estimate: float | None
    partitions: list[PartitionPlace]


def stream(info: StreamInfo) -> Stream:
    return Stream(
        id=str(info.id),
        name=info.name,
        data_type=info.data_type,
        partitions=info.partitions,
        max_message_bytes=info.max_message_bytes,
        segment_bytes=info.segment_bytes,
        segment_age_ms=_required_ms(info.segment_age),
        retain_up_to_ms=_ms(info.retain_up_to),
        retain_at_least_ms=_ms(info.retain_at_least),
        max_messages=info.max_messages,
        max_storage=info.max_storage,
        until_acked=info.until_acked,
        when_full=info.when_full,
        dedup_window_ms=_ms(info.dedup_window),
        one_message_per_key=info.one_message_per_key,
        process_unmodified=info.process_unmodified,
        is_full=info.is_full,
        segment_count=info.segment_count,
        start_seq=info.start_seq,
        last_seq=info.last_seq,
        stats=StreamSize(message_count=info.message_estimate, storage_size=info.bytes),
        inserted_at=_utc(info.created_at),
        updated_at=_utc(info.created_at),
    )


def held_at(holder: HorizonHolder) -> HeldAt:
    return HeldAt(
        seq=holder.held_at_seq,
        held_for_ms=_ms(holder.held_for),
        transaction_started_at=holder.transaction_started_at,
        pid=holder.pid,
        user_name=holder.user_name,
        application_name=holder.application_name,
        state=holder.state,
        prepared_transaction=holder.prepared_transaction,
    )


def message(source: Message | Delivery | Peeked | DeadLetter | HistoryEntry, stream_id: str) -> StoredMessage:
    data, digest, encoding = _content(source.data)
    published_at = None if source.published_at is None else _utc(source.published_at)
    return StoredMessage(
        key=source.key,
        stream_id=stream_id,
        data=data,
        data_hash=digest,
        seq=source.seq or 0,
        partition=source.partition,
        inserted_at=published_at,
        updated_at=published_at,
        headers=None if source.headers is None else dict(source.headers),
        encoding=encoding,
    )


def received(deliveries: Sequence[Delivery], stream_id: str) -> list[Received]:
    """In order of seq, which is also the order within each key."""
    in_order = sorted(deliveries, key=lambda each: each.seq)
    return [Received(each.ack_id, each.attempt, message(each, stream_id)) for each in in_order]


def peeked(found: Peeked, stream_id: str) -> PeekedMessage:
    info = PeekInfo(
        ack_id=found.ack_id,
        state=found.state,
        deliver_count=found.attempts,
        not_visible_until=None if found.until is None else _utc(found.until),
        reason=found.reason,
    )
    return PeekedMessage(message=message(found, stream_id), info=info)


def message_consumer(info: ConsumerInfo, found: Peeked | None) -> MessageConsumer:
    return MessageConsumer(
        consumer_id=str(info.id),
        consumer_name=info.name,
        consumer_filter_key_pattern=info.filter_key_pattern,
        state="done" if found is None else found.state,
        deliver_count=None if found is None else found.attempts,
        not_visible_until=None if found is None or found.until is None else _utc(found.until),
    )


def dead(letter: DeadLetter, stream_id: str) -> DeadMessage:
    return DeadMessage(
        message=message(letter, stream_id),
        deliver_count=letter.attempts,
        reason=letter.reason,
        died_at=_utc(letter.died_at),
    )


def past_delivery(entry: HistoryEntry, stream_id: str) -> PastDelivery:
    return PastDelivery(
        seq=entry.seq,
        partition=entry.partition,
        message=None if entry.published_at is None else message(entry, stream_id),
        outcome=entry.outcome,
        attempt=entry.attempt,
        received_at=_utc(entry.received_at),
        finished_at=_utc(entry.finished_at),
        duration_ms=_required_ms(entry.duration),
        last_error=entry.last_error,
    )


def published(numbers: Sequence[int], *, is_scheduled: bool = False) -> Published:
    duplicates = [place for place, number in enumerate(numbers) if isinstance(number, Seq) and number.is_duplicate]
    plain = [int(number) for number in numbers]
    return Published(
        published=len(plain) - len(duplicates),
        seqs=None if is_scheduled else plain,
        scheduled_ids=plain if is_scheduled else None,
        duplicates=duplicates or None,
    )


def scheduled(found: Scheduled) -> ScheduledMessage:
    data, _, encoding = _content(found.data)
    return ScheduledMessage(
        id=found.id,
        deliver_at=_utc(found.deliver_at),
        scheduled_at=_utc(found.scheduled_at),
        ttl_ms=_ms(found.ttl),
        key=found.key,
        data=data,
        headers=None if found.headers is None else dict(found.headers),
        encoding=encoding,
    )


def consumer(info: ConsumerInfo, stream_id: str) -> Consumer:
    return Consumer(
        id=str(info.id),
        name=info.name,
        stream=info.stream,
        stream_id=stream_id,
        kind="pull",
        status="disabled" if info.paused else "active",
        ack_wait_ms=_required_ms(info.ack_wait),
        max_ack_pending=info.max_ack_pending,
        max_deliver=info.max_deliver,
        max_waiting=info.max_waiting,
        filter_key_pattern=info.filter_key_pattern,
        filter_headers=None if info.filter_headers is None else dict(info.filter_headers),
        filter_headers_not=None if info.filter_headers_not is None else dict(info.filter_headers_not),
        filter_data=info.filter_data,
        order=info.order,
        max_per_key=info.max_per_key,
        backoff_ms=[_required_ms(delay) for delay in info.backoff],
        backoff_factor=info.backoff_factor,
        backoff_cap_ms=_ms(info.backoff_cap),
        backoff_jitter=info.backoff_jitter,
        retain_dead_ms=_ms(info.retain_dead),
        on_dead=info.on_dead,
        on_expired=info.on_expired,
        keep_unread=info.keep_unread,
        expire_after_ms=_ms(info.expire_after),
        keep_history_ms=_ms(info.keep_history),
        is_group=info.is_group,
        inserted_at=_utc(info.created_at),
        updated_at=_utc(info.created_at),
    )


def consumer_place(stats: ConsumerStats) -> ConsumerPlace:
    return ConsumerPlace(
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
    )


_encode_json = msgspec.json.Encoder().encode


def _content(data: Any) -> tuple[Any, str, Encoding | None]:
    """Data as it travels, and its hash: of a string's text, of bytes, or of the JSON."""
    if isinstance(data, bytes):
        return base64.b64encode(data).decode(), hashlib.sha256(data).hexdigest(), "base64"
    if isinstance(data, str):
        with contextlib.suppress(UnicodeEncodeError):
            return data, hashlib.sha256(data.encode()).hexdigest(), None
    try:
        encoded = _encode_json(data)
    except UnicodeEncodeError:
        # Half a surrogate pair, published by SQL: only the escaped form can carry it.
        encoded = json.dumps(data, separators=(",", ":")).encode()
    return msgspec.Raw(encoded), hashlib.sha256(encoded).hexdigest(), None


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo is UTC else time.astimezone(UTC)


def _ms(duration: timedelta | None) -> int | None:
    return None if duration is None else _required_ms(duration)


def _required_ms(duration: timedelta) -> int:
    return round(duration.total_seconds() * 1000)

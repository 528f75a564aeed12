"""Answers about streams."""

from __future__ import annotations

from datetime import datetime

import msgspec

from postbus.model.stream import DataType, HorizonHolder, StreamInfo, WhenFull
from postbus.server.responses.common import ms, required_ms, utc


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


def stream(info: StreamInfo) -> Stream:
    return Stream(
        id=str(info.id),
        name=info.name,
        data_type=info.data_type,
        partitions=info.partitions,
        max_message_bytes=info.max_message_bytes,
        segment_bytes=info.segment_bytes,
        segment_age_ms=required_ms(info.segment_age),
        retain_up_to_ms=ms(info.retain_up_to),
        retain_at_least_ms=ms(info.retain_at_least),
        max_messages=info.max_messages,
        max_storage=info.max_storage,
        until_acked=info.until_acked,
        when_full=info.when_full,
        dedup_window_ms=ms(info.dedup_window),
        one_message_per_key=info.one_message_per_key,
        process_unmodified=info.process_unmodified,
        is_full=info.is_full,
        segment_count=info.segment_count,
        start_seq=info.start_seq,
        last_seq=info.last_seq,
        stats=StreamSize(message_count=info.message_estimate, storage_size=info.bytes),
        inserted_at=utc(info.created_at),
        updated_at=utc(info.created_at),
    )


def held_at(holder: HorizonHolder) -> HeldAt:
    return HeldAt(
        seq=holder.held_at_seq,
        held_for_ms=ms(holder.held_for),
        transaction_started_at=holder.transaction_started_at,
        pid=holder.pid,
        user_name=holder.user_name,
        application_name=holder.application_name,
        state=holder.state,
        prepared_transaction=holder.prepared_transaction,
    )

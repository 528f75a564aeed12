"""Responses about streams."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from postbus.model.settings import StreamSettings
from postbus.model.stream import HorizonHolder, StreamInfo
from postbus.server.responses.common import ms, utc
from postbus.server.setting_fields import response_of, setting_values


class StreamSize(msgspec.Struct):
    """`message_count` is exact up to 1,000 and an estimate beyond.

    `scheduled` messages wait for their time outside the log; 10,000 stands for that many or more.
    """

    message_count: int
    storage_size: int
    scheduled: int
    next_scheduled_at: datetime | None


class Stream(msgspec.Struct):
    id: str
    name: str
    is_full: bool
    segment_count: int
    start_seq: int
    last_seq: int
    stats: StreamSize
    inserted_at: datetime
    updated_at: datetime


if not TYPE_CHECKING:
    Stream = response_of(Stream, StreamSettings)


class HeldAt(msgspec.Struct):
    """An open transaction that has published. Readers cannot pass it."""

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
        is_full=info.is_full,
        segment_count=info.segment_count,
        start_seq=info.start_seq,
        last_seq=info.last_seq,
        stats=StreamSize(
            message_count=info.message_estimate,
            storage_size=info.bytes,
            scheduled=info.scheduled,
            next_scheduled_at=None if info.next_scheduled_at is None else utc(info.next_scheduled_at),
        ),
        inserted_at=utc(info.created_at),
        updated_at=utc(info.created_at),
        **setting_values(StreamSettings, info),
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

"""Responses about messages: published, stored, scheduled."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from postbus.model.consumer import DeadLetter, HistoryEntry, Peeked
from postbus.model.delivery import Delivery
from postbus.model.message import Message, Scheduled, Seq
from postbus.server.responses.common import ms, utc

Encoding = Literal["base64"]
_encode_json = msgspec.json.Encoder().encode


class Published(msgspec.Struct, omit_defaults=True):
    """`seqs` are the messages' numbers, or, when they were scheduled, `scheduled_ids`.

    `duplicates` are the places, from 0, of messages that were not published, because their `dedup_id` was before: their seqs are
    those of the messages that were. With one message per key also those that change nothing, or that a later one of the
    batch replaced.
    """

    published: int
    seqs: list[int] | None = None
    scheduled_ids: list[int] | None = None
    duplicates: list[int] | None = None


class StoredMessage(msgspec.Struct, omit_defaults=True):
    """`encoding` is “base64” if data is encoded bytes. `inserted_at` and `updated_at` are other names of `published_at`.

    `priority` is left out when it is 4.
    """

    key: str | None
    stream_id: str
    data: Any
    data_hash: str
    seq: int
    partition: int | None
    published_at: datetime | None
    inserted_at: datetime | None
    updated_at: datetime | None
    headers: dict[str, str] | None = None
    encoding: Encoding | None = None
    priority: int = 4


class ScheduledMessage(msgspec.Struct, omit_defaults=True):
    id: int
    deliver_at: datetime
    scheduled_at: datetime
    ttl_ms: int | None
    key: str | None
    data: Any
    headers: dict[str, str] | None = None
    encoding: Encoding | None = None
    priority: int = 4


def message(source: Message | Delivery | Peeked | DeadLetter | HistoryEntry, stream_id: str) -> StoredMessage:
    data, digest, encoding = content(source.data)
    published_at = None if source.published_at is None else utc(source.published_at)
    return StoredMessage(
        key=source.key,
        stream_id=stream_id,
        data=data,
        data_hash=digest,
        seq=source.seq or 0,
        partition=source.partition,
        published_at=published_at,
        inserted_at=published_at,
        updated_at=published_at,
        headers=None if source.headers is None else dict(source.headers),
        encoding=encoding,
        priority=source.priority,
    )


def published(numbers: Sequence[Seq], *, is_scheduled: bool = False) -> Published:
    duplicates = [place for place, number in enumerate(numbers) if number.is_duplicate]
    plain = [int(number) for number in numbers]
    return Published(
        published=len(plain) - len(duplicates),
        seqs=None if is_scheduled else plain,
        scheduled_ids=plain if is_scheduled else None,
        duplicates=duplicates or None,
    )


def scheduled(found: Scheduled) -> ScheduledMessage:
    data, _, encoding = content(found.data)
    return ScheduledMessage(
        id=found.id,
        deliver_at=utc(found.deliver_at),
        scheduled_at=utc(found.scheduled_at),
        ttl_ms=ms(found.ttl),
        key=found.key,
        data=data,
        headers=None if found.headers is None else dict(found.headers),
        encoding=encoding,
        priority=found.priority,
    )


def content(data: Any) -> tuple[Any, str, Encoding | None]:
    """Data as sent, and its hash: of a string's text, of bytes, or of the JSON."""
    if isinstance(data, bytes):
        return base64.b64encode(data).decode(), hashlib.sha256(data).hexdigest(), "base64"
    if isinstance(data, str):
        with contextlib.suppress(UnicodeEncodeError):
            return data, hashlib.sha256(data.encode()).hexdigest(), None
    try:
        encoded = _encode_json(data)
    except UnicodeEncodeError:
        # Half a surrogate pair, published by SQL: only escaped JSON can represent it.
        encoded = json.dumps(data, separators=(",", ":")).encode()
    return msgspec.Raw(encoded), hashlib.sha256(encoded).hexdigest(), None

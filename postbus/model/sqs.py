"""A queue for clients of SQS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from postbus.model.stream import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsQueue:
    """A name under which clients of SQS use a consumer.

    Attributes:
        name: Its name; that of a FIFO queue ends in “.fifo”.
        stream: The stream that its clients send to.
        consumer: The consumer whose messages they receive.
        owns_stream: CreateQueue has made the stream, so DeleteQueue drops it.
        attributes: Attributes of SQS that were set.
        tags: Tags of SQS.
        created_at: When it was created or exposed.
        changed_at: When its attributes were changed.
        purged_at: When it was purged last; None for never.
    """

    name: str
    stream: str
    consumer: str
    owns_stream: bool
    attributes: Mapping[str, str]
    tags: Mapping[str, str]
    created_at: datetime
    changed_at: datetime
    purged_at: datetime | None

    @property
    def is_fifo(self) -> bool:
        return self.name.endswith(".fifo")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSqsQueue(SqsQueue):
    """A queue as a server needs it.

    Attributes:
        id: The queue's number, in receipt handles.
        id_base: What ids of messages are made from.
        data_type: What the stream holds.
        has_dedup: The stream has a dedup_window.
    """

    id: int
    id_base: str
    data_type: DataType
    has_dedup: bool


@dataclass(frozen=True, slots=True)
class SqsCounts:
    """How many messages of a queue can be received, are in flight, or wait for their time."""

    visible: int
    in_flight: int
    delayed: int

"""What is known of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

DataType = Literal["json", "text", "bytes"]
WhenFull = Literal["evict", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamInfo:
    """A stream's settings and size.

    Attributes:
        name: The stream's name.
        id: Its number, never used again.
        data_type: What its messages hold: json, text or bytes.
        partitions: How many ways its keys are spread.
        max_message_bytes: The largest data a message may have.
        segment_bytes: How large a segment of its log becomes before the next is begun.
        segment_age: How old a segment becomes before the next is begun.
        retain_up_to: Messages older than this go; None keeps them.
        retain_at_least: Messages younger than this stay.
        max_messages: How many messages it holds at most.
        max_storage: How many bytes it takes on disk at most.
        until_acked: Messages go when all consumers have finished them.
        when_full: What happens at such a limit: evict or refuse.
        dedup_window: A message whose id was published within this time is not published again; None does not look.
        one_message_per_key: Publishing a key replaces it: consumers get its latest version only.
        process_unmodified: There, data that has not changed is published all the same.
        channel_tokens: How many leading tokens of a key name its channel; None: there are no channels.
        is_full: Whether new messages are refused now.
        start_seq: Messages below this seq were purged.
        last_seq: The highest seq given out, perhaps to a message that is not committed or never will be.
        message_estimate: How many messages it holds, with those that only a consumer still holds: exact up to 1,000, beyond by
            Postgres's statistics.
        bytes: What it takes on disk.
        segment_count: How many segments its log has.
        scheduled: How many messages wait for their time, outside the log; 10,000 stands for that many or more.
        next_scheduled_at: When the next of them is due.
        created_at: When it was created.
    """

    name: str
    id: int
    data_type: DataType
    partitions: int
    max_message_bytes: int
    segment_bytes: int
    segment_age: timedelta
    retain_up_to: timedelta | None
    retain_at_least: timedelta | None
    max_messages: int | None
    max_storage: int | None
    until_acked: bool
    when_full: WhenFull
    dedup_window: timedelta | None
    one_message_per_key: bool
    process_unmodified: bool
    channel_tokens: int | None
    is_full: bool
    start_seq: int
    last_seq: int
    message_estimate: int
    bytes: int
    segment_count: int
    scheduled: int
    next_scheduled_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonHolder:
    """A transaction that has published and not ended, so that readers cannot go on past it.

    Attributes:
        held_at_seq: Readers stop here until it ends.
        held_for: How long the transaction has been open. What follows is None where this role may not see it.
        transaction_started_at: When it began.
        pid: Its backend; None for a prepared transaction.
        user_name: Whose transaction it is.
        application_name: What its session calls itself.
        state: What the session does now, such as "idle in transaction".
        query: Its last statement.
        prepared_transaction: The name of a prepared transaction.
    """

    held_at_seq: int
    held_for: timedelta | None
    transaction_started_at: datetime | None
    pid: int | None
    user_name: str | None
    application_name: str | None
    state: str | None
    query: str | None
    prepared_transaction: str | None

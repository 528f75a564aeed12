"""Where streams and consumers stand, as somebody sees it who looks again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from postbus.model.consumer import Ordering


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOverview:
    """Where a stream stands.

    Attributes:
        name: Its name.
        start_seq: Messages below this seq were purged.
        last_seq: The highest seq given out: what it grows by is about the rate of publishing.
        is_full: Whether new messages are refused now.
        until_acked: Messages go when all consumers have finished them, as in a queue.
        consumer_count: How many consumers it has.
        message_estimate: How many messages it holds, exact up to 1,000; None unless sizes were asked for.
        bytes: What it takes on disk; None unless sizes were asked for.
        scheduled: How many messages wait for their time, up to 10,000; None unless sizes were asked for.
        next_scheduled_at: When the next of them is due.
    """

    name: str
    start_seq: int
    last_seq: int
    is_full: bool
    until_acked: bool
    consumer_count: int
    message_estimate: int | None
    bytes: int | None
    scheduled: int | None
    next_scheduled_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOverview:
    """Where a consumer stands; see `ConsumerStats`.

    Attributes:
        stream: The stream that it reads.
        name: Its name.
        is_group: Whether it is a group, read by position.
        order: key, none or partition.
        paused: Whether it gives no messages.
        backlog: How many messages it has not finished.
        backlog_is_exact: They were counted. Otherwise it is an estimate.
        lag_estimate: How many messages were not given out yet, as exact as the backlog.
        in_flight: How many messages are leased and not settled.
        redelivering: How many of those were delivered before.
        waiting: How many messages wait for another delivery or are parked behind their key, up to 10,000.
        dead: How many dead letters there are, up to 10,000.
        oldest_unread_at: When the oldest message was published that was not given out.
        oldest_in_flight_at: When the oldest lease was given.
        timed_out: How many deliveries have ended because their lease expired, since the last seek.
        by_priority: How many messages were not given out yet, wait or are parked, by each priority in use.
    """

    stream: str
    name: str
    is_group: bool
    order: Ordering
    paused: bool
    backlog: int
    backlog_is_exact: bool
    lag_estimate: int
    in_flight: int
    redelivering: int
    waiting: int
    dead: int
    oldest_unread_at: datetime | None
    oldest_in_flight_at: datetime | None
    timed_out: int
    by_priority: Mapping[int, int] = field(default_factory=dict)

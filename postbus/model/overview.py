"""Where streams and consumers stand, as somebody sees it who looks again and again."""

from __future__ import annotations

from dataclasses import dataclass
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
        message_estimate: About how many messages it holds; None unless sizes were asked for.
        bytes: What it takes on disk; None unless sizes were asked for.
    """

    name: str
    start_seq: int
    last_seq: int
    is_full: bool
    until_acked: bool
    consumer_count: int
    message_estimate: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOverview:
    """Where a consumer stands; see `ConsumerStats`.

    Attributes:
        name: Its name.
        order: key, none or partition.
        paused: Whether it gives no messages.
        lag_estimate: About how many messages are left to be given out; 0 is exact.
        in_flight: How many messages are leased and not settled.
        redelivering: How many of those were delivered before.
        waiting: How many failed messages wait for another delivery, up to 10,000.
        dead: How many dead letters there are, up to 10,000.
        oldest_unread_at: When the oldest message was published that was not given out.
        oldest_in_flight_at: When the oldest lease was given.
    """

    name: str
    order: Ordering
    paused: bool
    lag_estimate: int
    in_flight: int
    redelivering: int
    waiting: int
    dead: int
    oldest_unread_at: datetime | None
    oldest_in_flight_at: datetime | None

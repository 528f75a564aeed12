"""What a report has found out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from postbus.model.stream import StreamInfo
from postbus.pipelines.report.buckets import Buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key, or None for the messages without one, and what was published under it."""

    key: str | None
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What was published: in all, and in each bucket.

    Attributes:
        messages: How many messages,
        bytes: and bytes of data.
        in_log: How many of the messages the log still has; the rest is in the archive only.
        key_count: How many keys there are,
        keys: and those with the most messages.
    """

    messages: tuple[int, ...] = ()
    bytes: tuple[int, ...] = ()
    in_log: tuple[int, ...] = ()
    key_count: int = 0
    keys: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """How long messages took, in seconds, within 2 %; None where there are none."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why messages failed or died, and how often. Numbers in it are #, so that those which differ in nothing else are one."""

    consumer: str
    reason: str | None
    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliveries:
    """What became of deliveries, by a consumer's history; tuples have a value for each bucket.

    Attributes:
        acked: How many messages were acked,
        failed: failed and came again,
        dead: or were given up.
        redelivered: How many of all these were not the first delivery of their message.
        latency: From published to acked, of all messages
        latencies: and of those acked in each bucket.
        slowest: The longest of them, in seconds.
        waited: How long, on average, acked messages waited until they were received,
        worked: and how long it took from there.
        lag: How many messages were published and not finished at the end of each bucket.
        unknown: How many were finished of which it is not known when they were published.
        failures: Why they failed.
    """

    acked: tuple[int, ...]
    failed: tuple[int, ...]
    dead: tuple[int, ...]
    redelivered: tuple[int, ...]
    latency: Percentiles
    latencies: tuple[Percentiles, ...]
    slowest: float | None
    waited: float | None
    worked: float | None
    lag: tuple[int, ...]
    unknown: int
    failures: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerFacts:
    """A consumer: where it stands now, and what it did, if it keeps a history.

    Attributes:
        name: Its name.
        lag: About how many messages it has not been given yet,
        in_flight: has been given and not finished,
        waiting: is to be given again; 10,000 stands for that many or more,
        dead: and has given up; likewise.
        missed: About how many were gone before it came to them.
        is_group: It is read by position, and keeps no history.
        unread_known: Whether deliveries.lag has the messages that it has not been given yet.
        deliveries: None without a history.
        by_priority: How many messages it has not been given yet or waits for, by each priority in use.
    """

    name: str
    lag: int
    in_flight: int
    waiting: int
    dead: int
    missed: int
    is_group: bool
    unread_known: bool = True
    deliveries: Deliveries | None = None
    by_priority: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What a stream is expected to hold after some days, with the rate of the quietest and the busiest part of late."""

    days: int
    messages: int
    messages_low: int
    messages_high: int
    bytes: int
    bytes_low: int
    bytes_high: int
    archive_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Where a stream is going if it is published to as of late.

    Attributes:
        days: Over how many days the rate was taken.
        per_day: Messages per day,
        per_day_low: in the quietest part of these days
        per_day_high: and in the busiest.
        points: What the log will hold, today and on each day to come.
        bound: What keeps it from growing for ever, in words; None when nothing does.
        full_in: After how many days it reaches max_messages or max_storage; None when it does not within the forecast.
    """

    days: float
    per_day: float
    per_day_low: float
    per_day_high: float
    points: tuple[Point, ...]
    bound: str | None
    full_in: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFacts:
    """A stream in a time. buckets is None when it had no message in it."""

    info: StreamInfo
    buckets: Buckets | None
    traffic: Traffic
    consumers: tuple[ConsumerFacts, ...]
    dead: tuple[Reason, ...]
    forecast: Forecast | None
    archived: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found of some streams, and of which time; None has no bound."""

    made_at: datetime
    from_time: datetime | None
    to_time: datetime | None
    streams: tuple[StreamFacts, ...]

    @property
    def messages(self) -> int:
        """How many messages it counted."""
        return sum(sum(stream.traffic.messages) for stream in self.streams)

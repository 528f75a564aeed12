"""What is known of a consumer, and how long its failed messages wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from postbus.model.partitioning import priority_of

Ordering = Literal["key", "none", "partition"]
OnDead = Literal["continue", "hold"]
OnExpired = Literal["skip", "bury"]
Start = Literal["earliest", "latest"]
Outcome = Literal["acked", "failed", "dead"]
State = Literal["available", "delivered", "waiting", "dead"]
Completion = Literal["done", "dead", "timeout"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """A backoff that grows: `first`, then `factor` times as long after each failure, up to `cap`.

    Attributes:
        first: The delay after the first failure, in seconds or as timedelta.
        factor: By how much it grows.
        cap: The longest delay; None is 30 days.
        jitter: 0.2 makes each delay up to 20 % shorter or longer, so that failures do not come back all at once.
    """

    first: float | timedelta = 1.0
    factor: float = 2.0
    cap: float | timedelta | None = None
    jitter: float = 0.0


Backoff = Sequence[float | timedelta] | Exponential


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which messages a consumer wants: those that pass every part that is given.

    Attributes:
        key: A pattern of keys: `*` stands for one token, `>` at the end for one or more ("orders.*.paid", "orders.>").
        headers: Headers that a message must have, with these values.
        headers_not: Headers that it must not have with these values; a message without the header passes.
        data: A JSON path (SQL/JSON), in a json stream: the message passes when the path yields an item other than false and
            null, as in "$.amount > 100" or "$.items[*] ? (@.sku == 7)".
    """

    key: str | None = None
    headers: Mapping[str, str] | None = None
    headers_not: Mapping[str, str] | None = None
    data: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerInfo:
    """A consumer's settings.

    Attributes:
        stream: The stream that it reads.
        name: Its name.
        id: Its number, never used again.
        order: key (messages of a key in order), none, or partition (one batch of a partition at a time).
        ack_wait: How long a delivery is leased.
        max_ack_pending: How many messages may be in flight.
        max_deliver: How many deliveries before a message becomes a dead letter; None for ever.
        backoff: The delays after failures.
        backoff_factor: By how much the one delay grows, if it does.
        backoff_cap: The longest delay.
        backoff_jitter: How much each delay varies.
        retain_dead: How long dead letters are kept; None for ever.
        max_per_key: In order "key", how many messages of a key a batch may hold; None for any number.
        max_waiting: In order "key", how many messages may be parked before reading ahead stops.
        on_dead: In order "key", whether a dead letter lets its key go on or holds it.
        filter_key_pattern: The pattern that keys must match.
        filter_headers: Headers that messages must have.
        filter_headers_not: Headers that messages must not have.
        filter_data: The JSON path that data must match.
        on_expired: Whether a message whose time to live is over is skipped or becomes a dead letter.
        keep_unread: Whether the stream keeps what it has not finished.
        expire_after: It is removed when nobody has received from it for so long; None never.
        keep_history: For how long `history` knows what became of each delivery; None for not at all.
        dead_letters_to: The stream that a copy of each new dead letter is published to; None for none.
        ageing: After how long a waiting message gains a level of priority; None for never.
        fair: Whether channels that have messages take turns.
        is_group: Whether it is a group, read by position.
        paused: Whether it gives no messages.
        created_at: When it was created.
    """

    stream: str
    name: str
    id: int
    order: Ordering
    ack_wait: timedelta
    max_ack_pending: int
    max_deliver: int | None
    backoff: Sequence[timedelta]
    backoff_factor: float | None
    backoff_cap: timedelta | None
    backoff_jitter: float
    retain_dead: timedelta | None
    max_per_key: int | None
    max_waiting: int
    on_dead: OnDead
    filter_key_pattern: str | None
    filter_headers: Mapping[str, str] | None
    filter_headers_not: Mapping[str, str] | None
    filter_data: str | None
    on_expired: OnExpired
    keep_unread: bool
    expire_after: timedelta | None
    keep_history: timedelta | None
    dead_letters_to: str | None
    ageing: timedelta | None
    fair: bool
    is_group: bool
    paused: bool
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message that a consumer gave up.

    Attributes:
        seq: Its number in the stream.
        partition: Its partition.
        key: Its key, or None.
        data: A copy of its data.
        headers: A copy of its headers.
        published_at: When it was published.
        attempts: How often it was delivered.
        reason: Why it was given up.
        died_at: When that was.
        deferrals: How often it was deferred.
        saved_state: What was saved with it then. A redrive delivers it again with that.
    """

    seq: int
    partition: int
    key: str | None
    data: Any
    headers: Mapping[str, str] | None
    published_at: datetime
    attempts: int
    reason: str
    died_at: datetime
    deferrals: int = 0
    saved_state: Any = None

    @property
    def priority(self) -> int:
        """The priority it was published with."""
        return priority_of(self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peeked:
    """A message as a consumer sees it.

    Attributes:
        seq: Its number in the stream.
        partition: Its partition.
        key: Its key, or None.
        data: Its data.
        headers: Its headers.
        published_at: When it was published.
        state: available, delivered (leased), waiting (for another delivery) or dead.
        attempts: How often it was delivered.
        until: When its lease ends, or until when it waits after a failure or a deferral.
        reason: Why it failed last, or why it waits although it is available.
        ack_id: Names the delivery in flight, if there is one: what can be acked or nacked in its stead.
        last_delivered_at: When it was delivered last, if it is in flight or its lease has just expired.
        deferrals: How often it was deferred.
        saved_state: What was saved with it then.
    """

    seq: int
    partition: int
    key: str | None
    data: Any
    headers: Mapping[str, str] | None
    published_at: datetime
    state: State
    attempts: int
    until: datetime | None
    reason: str | None
    ack_id: str | None = None
    last_delivered_at: datetime | None = None
    deferrals: int = 0
    saved_state: Any = None

    @property
    def priority(self) -> int:
        """The priority it was published with."""
        return priority_of(self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """What became of a delivery.

    Attributes:
        seq: The message's number in the stream.
        partition: Its partition.
        key: Its key, or None. What follows up to published_at is None when it is gone from the stream.
        data: Its data.
        headers: Its headers.
        published_at: When it was published.
        outcome: acked, failed (it comes again) or dead.
        attempt: Which delivery it was, from 1.
        received_at: When it was received.
        finished_at: When it was acked or failed.
        duration: How long that took.
        last_error: Why it failed; of an acked message, why it failed before.
    """

    seq: int
    partition: int
    key: str | None
    data: Any
    headers: Mapping[str, str] | None
    published_at: datetime | None
    outcome: Outcome
    attempt: int
    received_at: datetime
    finished_at: datetime
    duration: timedelta
    last_error: str | None

    @property
    def priority(self) -> int:
        """The priority it was published with."""
        return priority_of(self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStats:
    """Where a consumer stands in a partition.

    Attributes:
        partition: Its number.
        position_seq: Up to here it was given out.
        lag_estimate: About how many messages are left, as if they were spread evenly and the filter took all; 0 is exact.
        oldest_unread_at: When the next message to be given out was published.
        in_flight: How many messages are leased and not settled.
    """

    partition: int
    position_seq: int
    lag_estimate: int
    oldest_unread_at: datetime | None
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerStats:
    """Where a consumer stands. Its cost does not depend on the depth of the stream.

    Attributes:
        backlog: How many messages it has not finished: not given out yet, in flight, waiting for another delivery, or parked
            behind their key. Dead letters and scheduled messages do not count.
        backlog_is_exact: They were counted. Otherwise it is an estimate: above 1,000 messages that were not given out, and for a
            filter by data. 0 is always exact.
        in_flight: How many messages are leased and not settled.
        waiting: How many messages wait for another delivery or are parked; 10,000 stands for that many or more.
        dead: How many dead letters there are; 10,000 stands for that many or more.
        lag_estimate: How many messages were not given out yet, as exact as the backlog.
        oldest_unread_at: When the oldest of them was published.
        oldest_in_flight_at: When the oldest lease was given.
        horizon_seq: How far the stream can be read now.
        expired: How many were skipped or buried because their time to live was over, since the last seek.
        missed_estimate: About how many were gone from the stream before it came to them: exact for parts of the log that were
            dropped whole or hold few messages, else as if messages were spread evenly.
        rate_estimate: About how many messages a second were given out in the last seconds; None for a group.
        partitions: The same for each partition.
        by_priority: How many messages were not given out yet, wait or are parked, by each priority in use.
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
    partitions: Sequence[PartitionStats]
    by_priority: Mapping[int, int] = field(default_factory=dict)

    @property
    def backlog_estimate(self) -> int:
        """The backlog, by its former name."""
        return self.backlog

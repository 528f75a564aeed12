"""What is known of a consumer, and how long its failed messages wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

Ordering = Literal["none", "partition"]
Start = Literal["earliest", "latest"]


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
class ConsumerInfo:
    """A consumer's settings.

    Attributes:
        stream: The stream that it reads.
        name: Its name.
        id: Its number, never used again.
        order: none, or partition: one batch of a partition at a time.
        ack_wait: How long a delivery is leased.
        max_ack_pending: How many messages may be in flight.
        max_deliver: How many deliveries before a message becomes a dead letter; None for ever.
        backoff: The delays after failures.
        backoff_factor: By how much the one delay grows, if it does.
        backoff_cap: The longest delay.
        backoff_jitter: How much each delay varies.
        retain_dead: How long dead letters are kept; None for ever.
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
    paused: bool
    created_at: datetime

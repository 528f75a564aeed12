"""What channels are: the messages of one tenant, with limits and turns of their own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

Limit = Literal["concurrency", "rate", "paused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelLimits:
    """The limits of the channels that a pattern matches. Of several patterns, the most specific counts.

    Attributes:
        pattern: The name of a channel, or a pattern of names.
        max_concurrency: How many messages of a channel a consumer may have in flight; None for any number.
        max_rate: How many it gets of a channel in each `per`; None for any number.
        per: See `max_rate`.
        burst: How many it gets at once after a pause.
        weight: How much of a turn a channel has, where a consumer is fair.
        paused: Whether it gets none.
    """

    pattern: str
    max_concurrency: int | None
    max_rate: int | None
    per: timedelta
    burst: int
    weight: int
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelState:
    """How a channel does for a consumer, and why its messages wait.

    Attributes:
        channel: Its name.
        partition: The partition that it is in.
        waiting: How many messages are ready and not in flight, as far as the consumer has read; 1,000 means that many or more.
        in_flight: How many are leased.
        limited_by: What holds it: concurrency, rate or paused. None if it only waits for its turn, or for a worker.
        next_at: When its rate lets it go on; None if that is not a matter of time.
        pattern: Whose limits it has; None for none.
    """

    channel: str
    partition: int
    waiting: int
    in_flight: int
    limited_by: Limit | None
    next_at: datetime | None
    pattern: str | None

"""How the handling of a message may end, besides returning, and what a worker tells of its work."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from postbus.model.consumer import Backoff, Exponential

DEFAULT_BACKOFF: Final = Exponential(first=1.0, cap=300.0, jitter=0.2)
_LONGEST_DELAY: Final = 30 * 24 * 3600.0
_LONGEST_REASON: Final = 1000


class Retry(Exception):
    """Raised by a handler: not now, deliver this message again.

    Args:
        reason: Why, kept with the message.
        delay: How long it waits first, in seconds or as timedelta; None takes the worker's backoff.
    """

    def __init__(
        self, reason: str = "the handler asked for a retry", *, delay: float | timedelta | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.delay = delay


class Reject(Exception):
    """Raised by a handler: this message cannot be handled, make it a dead letter at once.

    Args:
        reason: Why, kept with the dead letter.
    """

    def __init__(self, reason: str = "the handler rejected it") -> None:
        super().__init__(reason)
        self.reason = reason


class Defer(Exception):
    """Returned or raised by a handler: deliver this message again later, with a state. It counts as no attempt.

    With `transaction=True`, what the handler wrote commits together with a Defer that it returns, and is rolled back by one that
    it raises.

    Args:
        delay: How long the message waits, in seconds or as timedelta. Without a delay and a time it is available at once.
        until: When it is available, instead of a delay.
        state: What to save with it: a JSON value or bytes, the `delivery.state` of its next delivery. Left out, the last one is
            kept; None removes it.
    """

    def __init__(
        self, *, delay: float | timedelta | None = None, until: datetime | None = None, state: Any = ...
    ) -> None:
        super().__init__("the handler deferred it")
        self.delay = delay
        self.until = until
        self.state = state


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSummary:
    """What a worker did while it ran.

    Attributes:
        acked_count: How many messages were handled and acked.
        failed_count: How many deliveries failed and were given back: exceptions, retries, and handlers that took too long.
        rejected_count: How many messages the handler rejected.
        deferred_count: How many deliveries the handler deferred.
        lost_count: How many deliveries were given up because their lease had ended; they went to somebody else.
    """

    acked_count: int = 0
    failed_count: int = 0
    rejected_count: int = 0
    lost_count: int = 0
    deferred_count: int = 0


def delay_after(backoff: Backoff, attempt: int, chance: random.Random) -> float:
    """How many seconds a message waits after its first, second, … failed delivery."""
    if isinstance(backoff, Exponential):
        delay = _seconds(backoff.first) * backoff.factor ** min(attempt - 1, 64)
        if backoff.cap is not None:
            delay = min(delay, _seconds(backoff.cap))
        delay *= 1 + backoff.jitter * chance.uniform(-1, 1)
    else:
        delay = _seconds(backoff[min(attempt, len(backoff)) - 1]) if backoff else 0.0
    return max(0.0, min(delay, _LONGEST_DELAY))


def reason_of(error: BaseException) -> str:
    """An exception in one text that Postgres can keep: its type and message, not too long."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return clean_reason(text)


def clean_reason(text: str) -> str:
    """A reason without what Postgres refuses, such as NUL, and not too long."""
    clean = text.replace("\0", "").encode("utf-8", "replace").decode()
    return clean if len(clean) <= _LONGEST_REASON else f"{clean[: _LONGEST_REASON - 1]}…"


def _seconds(duration: float | timedelta) -> float:
    return duration.total_seconds() if isinstance(duration, timedelta) else duration

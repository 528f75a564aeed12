"""What an answer of an endpoint, or the lack of one, means for the message and for the endpoint."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, Literal

from postbus.http.outgoing import OutgoingAnswer, OutgoingFailure
from postbus.model.delivery import Delivery
from postbus.model.push import PushEndpoint

Kind = Literal["ack", "fail", "dead", "return"]

# How long a message waits after its failures, where nothing else waits behind it: the schedule of Standard Webhooks.
_WHERE_NOTHING_WAITS: Final = tuple(
    timedelta(seconds=each) for each in (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
)
_WHERE_A_KEY_WAITS: Final = tuple(timedelta(seconds=each) for each in (5, 10, 20, 40, 80, 160, 180))
_JITTER: Final = 0.2
_SHORTEST_REST: Final = 1.0
_LONGEST_REST: Final = 3600.0
# An endpoint that asks for fewer requests without saying when.
_USUAL_REST: Final = 10.0
_GONE: Final = 410
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
# Said by what stands before an endpoint, when that does not work.
_OF_ENDPOINT: Final = (502, 503, 504)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a request came to.

    Attributes:
        kind: ack; fail, which counts as an attempt; dead, at once; return, which does not count.
        reason: Why it failed, in one line.
        delay: How long the message waits; None takes the consumer's backoff.
        is_failure: It counts against the endpoint.
        is_unreachable: Nothing was sent.
        rest: For how many seconds the endpoint asked to be left alone.
        pause: Why nothing more is to be sent at all.
    """

    kind: Kind
    reason: str = ""
    delay: timedelta | None = None
    is_failure: bool = False
    is_unreachable: bool = False
    rest: float | None = None
    pause: str | None = None


ACKED: Final = Outcome("ack")


def of_answer(
    answer: OutgoingAnswer, endpoint: PushEndpoint, attempt: int, *, is_resting: bool, chance: random.Random
) -> Outcome:
    """What an answer means. While the endpoint rests, failures that are its own do not count as attempts."""
    status = answer.status
    if 200 <= status < 300:
        return ACKED
    reason = f"answered {status}"
    if status == _GONE:
        return Outcome("return", reason, timedelta(), pause="it is gone (410)")
    if status in endpoint.permanent_statuses:
        return Outcome("dead", reason, is_failure=True)
    asked_for = _rest_of(answer.retry_after)
    if status == _TOO_MANY or (status == _UNAVAILABLE and asked_for is not None):
        return Outcome("return", reason, timedelta(), rest=_USUAL_REST if asked_for is None else asked_for)
    if status in _OF_ENDPOINT and is_resting:
        return Outcome("return", reason, timedelta(), is_failure=True)
    if 300 <= status < 400:
        reason += ": redirects are not followed"
    return Outcome("fail", reason, delay_after(endpoint, attempt, chance), is_failure=True)


def of_failure(
    failure: OutgoingFailure, endpoint: PushEndpoint, attempt: int, *, is_resting: bool, chance: random.Random
) -> Outcome:
    """What the lack of an answer means. A message that never left does not count as an attempt."""
    if failure.trouble == "refused":
        return Outcome("return", failure.reason, timedelta(), pause=failure.reason)
    if failure.trouble == "unreachable":
        return Outcome("return", failure.reason, timedelta(seconds=1), is_failure=True, is_unreachable=True)
    if is_resting:
        return Outcome("return", failure.reason, timedelta(), is_failure=True)
    return Outcome("fail", failure.reason, delay_after(endpoint, attempt, chance), is_failure=True)


def of_named(
    named: Sequence[Delivery] | None,
    deliveries: Sequence[Delivery],
    endpoint: PushEndpoint,
    attempt: int,
    chance: random.Random,
) -> tuple[Sequence[Delivery], Outcome]:
    """Which messages of a batch have failed though its request has not, and what that means for them.

    Args:
        named: Those that the answer named; None if it cannot be understood.
        deliveries: All of them.
        endpoint: The endpoint.
        attempt: Which attempt it was.
        chance: For the delay.
    """
    if named is None:
        delay = delay_after(endpoint, attempt, chance)
        return deliveries, Outcome("fail", "its answer cannot be understood", delay, is_failure=True)
    if not named:
        return (), ACKED
    return named, Outcome("fail", "named as failed by the answer", delay_after(endpoint, attempt, chance))


def delay_after(endpoint: PushEndpoint, attempt: int, chance: random.Random) -> timedelta | None:
    """How long a message waits after an attempt, a fifth more or less; None takes the consumer's backoff."""
    schedule: Sequence[timedelta] = endpoint.retry_schedule
    if not schedule:
        if endpoint.has_backoff:
            return None
        schedule = _WHERE_NOTHING_WAITS if endpoint.order == "none" else _WHERE_A_KEY_WAITS
    usual = schedule[min(attempt, len(schedule)) - 1]
    return usual * chance.uniform(1 - _JITTER, 1 + _JITTER)


def _rest_of(text: str | None) -> float | None:
    """The seconds of a Retry-After, which may be a date; None if it is neither."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:9])
    else:
        try:
            at = parsedate_to_datetime(text)
        except (ValueError, TypeError):
            return None
        seconds = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - time.time()
    return min(max(seconds, _SHORTEST_REST), _LONGEST_REST)

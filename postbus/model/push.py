"""Endpoints of push consumers, and attempts to send messages to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, get_args

PushMode = Literal["raw", "standard", "sequin", "batch"]
PushState = Literal["active", "resting", "paused"]
AttemptOutcome = Literal["acked", "failed", "dead", "returned", "test"]
PUSH_MODES: Final[tuple[PushMode, ...]] = get_args(PushMode)
ATTEMPT_OUTCOMES: Final[tuple[AttemptOutcome, ...]] = get_args(AttemptOutcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushInfo:
    """The endpoint of a push consumer, and how it does.

    Attributes:
        stream: The stream of the consumer.
        consumer: The consumer.
        url: Where its messages are sent.
        header_names: The names of the headers that are sent with each request. Their values are not shown.
        mode: What a body holds.
        batch_size: How many messages a request has at most, in mode batch.
        timeout: How long it may take to answer.
        concurrency: How many requests a process has open at once.
        max_rate: Requests per second, of all processes together; None for no limit.
        retry_schedule: How long a message waits after its first, second, … failure; empty: as the consumer's order suggests.
        permanent_statuses: Answers after which a message becomes a dead letter at once.
        keep_successes: Attempts that succeeded are kept, too.
        secret_count: With how many secrets requests are signed.
        state: active, resting (until `rests_until`), or paused (until somebody resumes it).
        reason: Why it rests or is paused.
        rests_until: When one request finds out whether it works again.
        first_failure_at: Since when nothing has succeeded.
        last_failure_at: When a request last failed.
        last_success_at: When a request last succeeded, to about ten seconds.
        last_error: Why the last one failed.
        created_at: When it was set.
    """

    stream: str
    consumer: str
    url: str
    header_names: Sequence[str]
    mode: PushMode
    batch_size: int
    timeout: timedelta
    concurrency: int
    max_rate: float | None
    retry_schedule: Sequence[timedelta]
    permanent_statuses: Sequence[int]
    keep_successes: bool
    secret_count: int
    state: PushState
    reason: str | None
    rests_until: datetime | None
    first_failure_at: datetime | None
    last_failure_at: datetime | None
    last_success_at: datetime | None
    last_error: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PushAttempt:
    """An attempt to send a message.

    Attributes:
        seq: The message; None for a test.
        test_id: The test; None for a message.
        attempt: Which delivery of the message it was.
        attempted_at: When it ended.
        outcome: acked; failed; dead, if the message became a dead letter at once; returned, if it does not count; test.
        status: The status of the answer; None if there was none.
        duration: How long it took.
        error: Why it failed; None if it did not.
        address: The address that the request was sent to.
        answer: The first KiB of the answer.
    """

    seq: int | None
    test_id: int | None
    attempt: int
    attempted_at: datetime
    outcome: AttemptOutcome
    status: int | None
    duration: timedelta
    error: str | None
    address: str | None
    answer: bytes | None


@dataclass(frozen=True, slots=True)
class PushTarget:
    """What whoever sends asks about all endpoints, once a second."""

    consumer_id: int
    stream: str
    consumer: str
    version: int
    is_active: bool
    is_resting: bool
    rest_seconds: float
    has_test: bool


@dataclass(frozen=True, slots=True)
class PushEndpoint:
    """An endpoint for whoever sends, with its secrets, the newest first. They are not in its repr."""

    stream_id: int
    data_type: str
    order: str
    ack_wait: timedelta
    has_backoff: bool
    url: str
    headers: dict[str, str]
    mode: PushMode
    batch_size: int
    timeout: timedelta
    concurrency: int
    max_rate: float | None
    retry_schedule: Sequence[timedelta]
    permanent_statuses: Sequence[int]
    keep_successes: bool
    secrets: Sequence[str]
    secrets_change_in: float | None

    def __repr__(self) -> str:
        return f"PushEndpoint(url={self.url.partition('?')[0]!r})"

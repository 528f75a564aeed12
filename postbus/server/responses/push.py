"""Endpoints of push consumers, and attempts, in responses."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Literal

import msgspec

from postbus.model.push import AttemptOutcome, PushAttempt, PushInfo, PushMode, PushState
from postbus.server.responses.common import required_ms, utc


class Push(msgspec.Struct):
    """`secret` is shown only in the response that creates the endpoint. Values of headers are not shown."""

    stream: str
    consumer: str
    url: str
    header_names: list[str]
    mode: PushMode
    batch_size: int
    timeout_ms: int
    concurrency: int
    max_rate: float | None
    retry_schedule_ms: list[int]
    permanent_statuses: list[int]
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
    secret: str | msgspec.UnsetType = msgspec.UNSET


class Attempt(msgspec.Struct):
    """`answer` is the first KiB of the answer: text, unless `answer_encoding` is base64."""

    seq: int | None
    test_id: int | None
    attempt: int
    attempted_at: datetime
    outcome: AttemptOutcome
    status: int | None
    duration_ms: float
    error: str | None
    address: str | None
    answer: str | None
    answer_encoding: Literal["base64"] | None = None


def push(found: PushInfo, secret: str | None = None) -> Push:
    return Push(
        stream=found.stream,
        consumer=found.consumer,
        url=found.url,
        header_names=list(found.header_names),
        mode=found.mode,
        batch_size=found.batch_size,
        timeout_ms=required_ms(found.timeout),
        concurrency=found.concurrency,
        max_rate=found.max_rate,
        retry_schedule_ms=[required_ms(each) for each in found.retry_schedule],
        permanent_statuses=list(found.permanent_statuses),
        keep_successes=found.keep_successes,
        secret_count=found.secret_count,
        state=found.state,
        reason=found.reason,
        rests_until=_some(found.rests_until),
        first_failure_at=_some(found.first_failure_at),
        last_failure_at=_some(found.last_failure_at),
        last_success_at=_some(found.last_success_at),
        last_error=found.last_error,
        created_at=utc(found.created_at),
        secret=msgspec.UNSET if secret is None else secret,
    )


def attempt(found: PushAttempt) -> Attempt:
    answer, encoding = _text(found.answer)
    return Attempt(
        seq=found.seq,
        test_id=found.test_id,
        attempt=found.attempt,
        attempted_at=utc(found.attempted_at),
        outcome=found.outcome,
        status=found.status,
        duration_ms=found.duration.total_seconds() * 1000,
        error=found.error,
        address=found.address,
        answer=answer,
        answer_encoding=encoding,
    )


def _text(answer: bytes | None) -> tuple[str | None, Literal["base64"] | None]:
    if answer is None:
        return None, None
    try:
        return answer.decode(), None
    except UnicodeDecodeError:
        return base64.b64encode(answer).decode(), "base64"


def _some(time: datetime | None) -> datetime | None:
    return None if time is None else utc(time)

"""Decodes endpoints, attempts and webhook sources, from rows and from answers over HTTP."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from postbus.codec.answers import understood
from postbus.codec.rows import Row
from postbus.model.push import PushAttempt, PushInfo
from postbus.model.webhook import WebhookRefusal, WebhookSourceInfo


def push_info(row: Row) -> PushInfo:
    return PushInfo(**dict(zip(PushInfo.__dataclass_fields__, row, strict=True)))


def push_attempt(row: Row) -> PushAttempt:
    return PushAttempt(**dict(zip(PushAttempt.__dataclass_fields__, row, strict=True)))


def webhook_source(row: Row) -> WebhookSourceInfo:
    *fields, refusals = row
    names = list(WebhookSourceInfo.__dataclass_fields__)[:-1]
    return WebhookSourceInfo(**dict(zip(names, fields, strict=True)), last_refusals=_refusals(refusals))


@understood
def push_info_answered(found: Mapping[str, Any]) -> PushInfo:
    times = ("rests_until", "first_failure_at", "last_failure_at", "last_success_at", "created_at")
    durations = {
        "timeout": timedelta(milliseconds=found["timeout_ms"]),
        "retry_schedule": [timedelta(milliseconds=each) for each in found["retry_schedule_ms"]],
    }
    values = {**found, **durations, **{name: _moment(found[name]) for name in times}}
    return PushInfo(**{name: values[name] for name in PushInfo.__dataclass_fields__})


@understood
def push_attempt_answered(found: Mapping[str, Any]) -> PushAttempt:
    answer = found["answer"]
    if answer is not None:
        answer = base64.b64decode(answer) if found.get("answer_encoding") == "base64" else answer.encode()
    values = {
        **found,
        "answer": answer,
        "attempted_at": _moment(found["attempted_at"]),
        "duration": timedelta(milliseconds=found["duration_ms"]),
    }
    return PushAttempt(**{name: values[name] for name in PushAttempt.__dataclass_fields__})


@understood
def webhook_source_answered(found: Mapping[str, Any]) -> WebhookSourceInfo:
    values = {
        **found,
        "created_at": _moment(found["created_at"]),
        "last_refusals": _refusals(found["last_refusals"]),
    }
    return WebhookSourceInfo(**{name: values[name] for name in WebhookSourceInfo.__dataclass_fields__})


def _refusals(found: Sequence[Mapping[str, Any]]) -> tuple[WebhookRefusal, ...]:
    return tuple(
        WebhookRefusal(
            refused_at=datetime.fromisoformat(each["refused_at"]),
            status=each["status"],
            reason=each["reason"],
            refused_count=each["refused_count"],
        )
        for each in found
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)

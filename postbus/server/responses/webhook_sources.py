"""Webhook sources in responses."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from postbus.model.webhook import WebhookKind, WebhookSourceInfo
from postbus.server.responses.common import utc


class WebhookRefusal(msgspec.Struct):
    """`refused_count` requests were refused since the entry before."""

    refused_at: datetime
    status: int
    reason: str
    refused_count: int


class WebhookSource(msgspec.Struct):
    """`secret` is shown only in the response that creates the source, if it was made there."""

    name: str
    stream: str
    kind: WebhookKind
    path: str
    secret_count: int
    options: dict[str, Any]
    key_template: str
    id_from: str | None
    keep_headers: list[str]
    dedup: bool
    max_body_bytes: int
    max_rate: float | None
    paused: bool
    created_at: datetime
    last_refusals: list[WebhookRefusal]
    secret: str | msgspec.UnsetType = msgspec.UNSET


def webhook_source(found: WebhookSourceInfo, secret: str | None = None) -> WebhookSource:
    return WebhookSource(
        name=found.name,
        stream=found.stream,
        kind=found.kind,
        path=f"/api/webhook/{found.name}",
        secret_count=found.secret_count,
        options=dict(found.options),
        key_template=found.key_template,
        id_from=found.id_from,
        keep_headers=list(found.keep_headers),
        dedup=found.dedup,
        max_body_bytes=found.max_body_bytes,
        max_rate=found.max_rate,
        paused=found.paused,
        created_at=utc(found.created_at),
        last_refusals=[
            WebhookRefusal(utc(each.refused_at), each.status, each.reason, each.refused_count)
            for each in found.last_refusals
        ],
        secret=msgspec.UNSET if secret is None else secret,
    )

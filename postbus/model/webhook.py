"""Webhook sources: requests of others that become messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, get_args

WebhookKind = Literal["standard", "stripe", "github", "shopify", "slack", "hmac", "basic", "header", "none"]
WEBHOOK_KINDS: Final[tuple[WebhookKind, ...]] = get_args(WebhookKind)
# Where the receiver chooses the secret. All others give you theirs.
SECRET_MADE_FOR: Final[tuple[WebhookKind, ...]] = ("github", "standard", "hmac", "header")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRefusal:
    """Requests that a webhook source refused.

    Attributes:
        refused_at: When.
        status: What was answered.
        reason: Why. The sender was not told.
        refused_count: How many, since the last entry.
    """

    refused_at: datetime
    status: int
    reason: str
    refused_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSourceInfo:
    """A webhook source, without its secrets.

    Attributes:
        name: Its name, the end of its path: /api/webhook/<name>.
        stream: The stream that it publishes to.
        kind: Who sends, and so how a request is verified.
        secret_count: How many secrets it has; any of them verifies a request.
        options: What else its kind needs.
        key_template: What keys are made from.
        id_from: Where the id of an event is; None where its kind has it.
        keep_headers: Which headers go along, besides those of its kind.
        dedup: An event whose id was seen within the stream's dedup_window is not published again.
        max_body_bytes: The largest body.
        max_rate: Requests per second that each process accepts; None for no limit.
        paused: Requests are refused with 503, so that senders repeat them.
        created_at: When it was created.
        last_refusals: The last ten, the newest first.
    """

    name: str
    stream: str
    kind: WebhookKind
    secret_count: int
    options: Mapping[str, Any]
    key_template: str
    id_from: str | None
    keep_headers: Sequence[str]
    dedup: bool
    max_body_bytes: int
    max_rate: float | None
    paused: bool
    created_at: datetime
    last_refusals: Sequence[WebhookRefusal]


@dataclass(frozen=True, slots=True)
class ReceivingSource:
    """A webhook source for the server that receives for it. Its secrets are not in its repr."""

    id: int
    stream: str
    data_type: str
    kind: WebhookKind
    secrets: Sequence[str]
    options: Mapping[str, Any]
    key_template: str
    id_from: str | None
    keep_headers: Sequence[str]
    dedup: bool
    max_body_bytes: int
    max_rate: float | None
    paused: bool

    def __repr__(self) -> str:
        return f"ReceivingSource(id={self.id}, kind={self.kind!r})"

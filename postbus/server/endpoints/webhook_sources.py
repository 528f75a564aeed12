"""Webhook sources: create, list, change, delete. What they receive comes in by receiving.py."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.model.webhook import WebhookKind
from postbus.operations import webhook_sources
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import Name, given
from postbus.server.responses import Data
from postbus.server.responses.webhook_sources import WebhookSource, webhook_source

endpoints = Endpoints()

Secret = Annotated[str, Meta(min_length=1, max_length=1000, extra_json_schema={"format": "webhook-secret"})]
Secrets = Annotated[list[Secret], Meta(min_length=1, max_length=10)]
Template = Annotated[str, Meta(min_length=1, max_length=500, pattern=r"^[^\x00]+$")]
IdFrom = Annotated[
    str,
    Meta(
        pattern=r"^(sha256|header:[A-Za-z0-9_-]{1,100}|json:(/[^/\x00\n]{1,100}){1,10})$",
        description="header:NAME, json:/POINTER or sha256",
    ),
]
NewIdFrom = Annotated[
    str,
    Meta(
        pattern=r"^(sha256|header:[A-Za-z0-9_-]{1,100}|json:(/[^/\x00\n]{1,100}){1,10})?$",
        description="As at first; “” takes what its kind says",
    ),
]
HeaderNames = Annotated[
    list[
        Annotated[
            str, Meta(pattern=r"^[a-z0-9_-]{1,100}$", extra_json_schema={"not": {"enum": ["authorization", "cookie"]}})
        ]
    ],
    Meta(max_length=50),
]
MaxBody = Annotated[int, Meta(ge=1, le=26_214_400)]
MaxRate = Annotated[float, Meta(ge=0.001, le=1_000_000, description="Requests per second")]
NewMaxRate = Annotated[
    float,
    Meta(
        le=1_000_000,
        description="Requests per second; 0 sets no limit",
        extra_json_schema={"anyOf": [{"const": 0}, {"minimum": 0.001}]},
    ),
]


class NewWebhookSource(Struct, forbid_unknown_fields=True):
    """Without `secrets`, one is made for the kinds standard, github, hmac and header. `options` depend on the kind."""

    schema_extra: ClassVar[dict[str, Any]] = {
        # What is always valid; other kinds need options or secrets of their own.
        "x-needs": {"hmac": ["options.header"], "header": ["options.header"], "basic": ["options.username", "secrets"]},
    }

    name: Name
    stream: Name
    kind: WebhookKind
    secrets: Secrets | UnsetType = UNSET
    options: dict[str, Any] | UnsetType = UNSET
    key_template: Template | UnsetType = UNSET
    id_from: IdFrom | UnsetType = UNSET
    keep_headers: HeaderNames | UnsetType = UNSET
    dedup: bool = True
    max_body_bytes: MaxBody = 1_048_576
    max_rate: MaxRate | UnsetType = UNSET


class ChangedWebhookSource(Struct, forbid_unknown_fields=True):
    """What is left out stays as it is. `secrets` and `options` replace the ones there are."""

    stream: Name | UnsetType = UNSET
    secrets: Secrets | UnsetType = UNSET
    options: dict[str, Any] | UnsetType = UNSET
    key_template: Template | UnsetType = UNSET
    id_from: NewIdFrom | UnsetType = UNSET
    keep_headers: HeaderNames | UnsetType = UNSET
    dedup: bool | UnsetType = UNSET
    max_body_bytes: MaxBody | UnsetType = UNSET
    max_rate: NewMaxRate | UnsetType = UNSET
    paused: bool | UnsetType = UNSET


class DroppedWebhookSource(Struct):
    name: str
    deleted: bool = True


@endpoints.add(webhook_sources.CREATE, invalid_status=422)
async def create_webhook_source(call: Call, body: NewWebhookSource) -> Data[WebhookSource]:
    """Create a webhook source, which receives at /api/webhook/{source}."""
    secret = await call.bus.webhook_sources.create(
        body.name,
        body.stream,
        kind=body.kind,
        secrets=given(body.secrets) or (),
        options=given(body.options),
        key=given(body.key_template),
        id_from=given(body.id_from),
        keep_headers=given(body.keep_headers) or (),
        dedup=body.dedup,
        max_body_bytes=body.max_body_bytes,
        max_rate=given(body.max_rate),
    )
    return Data(webhook_source(await call.bus.webhook_sources.info(body.name), secret))


@endpoints.add(webhook_sources.LIST)
async def list_webhook_sources(call: Call) -> Data[list[WebhookSource]]:
    """List the webhook sources, with the last requests that each refused."""
    return Data([webhook_source(each) for each in await call.bus.webhook_sources.list_all()])


@endpoints.add(webhook_sources.INFO)
async def get_webhook_source(call: Call) -> Data[WebhookSource]:
    """Get a webhook source, with the last requests that it refused."""
    return Data(webhook_source(await call.bus.webhook_sources.info(_name(call))))


@endpoints.add(webhook_sources.ALTER, invalid_status=422)
async def alter_webhook_source(call: Call, body: ChangedWebhookSource) -> Data[WebhookSource]:
    """Change a webhook source."""
    await call.bus.webhook_sources.alter(
        _name(call),
        stream=given(body.stream),
        secrets=given(body.secrets),
        options=given(body.options),
        key=given(body.key_template),
        id_from=given(body.id_from),
        keep_headers=given(body.keep_headers),
        dedup=given(body.dedup),
        max_body_bytes=given(body.max_body_bytes),
        max_rate=given(body.max_rate),
        paused=given(body.paused),
    )
    return Data(webhook_source(await call.bus.webhook_sources.info(_name(call))))


@endpoints.add(webhook_sources.DROP)
async def drop_webhook_source(call: Call) -> Data[DroppedWebhookSource]:
    """Remove a webhook source. What it has published stays."""
    await call.bus.webhook_sources.drop(_name(call))
    return Data(DroppedWebhookSource(_name(call)))


def _name(call: Call) -> str:
    return call.request.parameters["source"]

"""Webhook sources: create, change, drop, list; and what the server that receives for them asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from postbus.codec import parameters, webhooks
from postbus.model.webhook import ReceivingSource, WebhookKind, WebhookSourceInfo
from postbus.operations.call import Call, Http, Route, Sql, nothing

_PATH: Final = "/api/webhook-sources"
CREATE: Final = Route("POST", _PATH, "manage", on_all_streams=True)
LIST: Final = Route("GET", _PATH, "manage", on_all_streams=True)
INFO: Final = Route("GET", _PATH + "/{source}", "manage", on_all_streams=True)
ALTER: Final = Route("PATCH", _PATH + "/{source}", "manage", on_all_streams=True)
DROP: Final = Route("DELETE", _PATH + "/{source}", "manage", on_all_streams=True)


def create(
    name: str,
    stream: str,
    *,
    kind: WebhookKind,
    secrets: Sequence[str],
    options: Mapping[str, Any],
    key: str | None,
    id_from: str | None,
    keep_headers: Sequence[str],
    dedup: bool,
    max_body_bytes: int,
    max_rate: float | None,
    secret: str | None,
) -> Call[str | None]:
    """The secret, if one was made. Over HTTP the server makes it."""
    return Call(
        Sql(
            "select postbus.create_webhook_source($1, $2, $3, $4, $5::jsonb, $6, $7, $8, $9, $10, $11)",
            (
                name,
                stream,
                kind,
                parameters.text_array(secrets if secret is None else [secret]),
                orjson.dumps(dict(options)).decode(),
                key,
                id_from,
                parameters.text_array(keep_headers),
                dedup,
                max_body_bytes,
                None if max_rate is None else float(max_rate),
            ),
            lambda found: secret,
        ),
        Http(
            CREATE,
            (),
            lambda answer: answer.data.get("secret"),
            body={
                "name": name,
                "stream": stream,
                "kind": kind,
                "secrets": list(secrets) or None,
                "options": dict(options) or None,
                "key_template": key,
                "id_from": id_from,
                "keep_headers": list(keep_headers) or None,
                "dedup": dedup,
                "max_body_bytes": max_body_bytes,
                "max_rate": max_rate,
            },
        ),
    )


def alter(
    name: str,
    *,
    stream: str | None,
    secrets: Sequence[str] | None,
    options: Mapping[str, Any] | None,
    key: str | None,
    id_from: str | None,
    keep_headers: Sequence[str] | None,
    dedup: bool | None,
    max_body_bytes: int | None,
    max_rate: float | None,
    paused: bool | None,
) -> Call[None]:
    return Call(
        Sql(
            "select postbus.alter_webhook_source($1, $2, $3, $4::jsonb, $5, $6, $7, $8, $9, $10, $11)",
            (
                name,
                stream,
                None if secrets is None else parameters.text_array(secrets),
                None if options is None else orjson.dumps(dict(options)).decode(),
                key,
                id_from,
                None if keep_headers is None else parameters.text_array(keep_headers),
                dedup,
                max_body_bytes,
                None if max_rate is None else float(max_rate),
                paused,
            ),
            nothing,
        ),
        Http(
            ALTER,
            (name,),
            nothing,
            body={
                "stream": stream,
                "secrets": None if secrets is None else list(secrets),
                "options": None if options is None else dict(options),
                "key_template": key,
                "id_from": id_from,
                "keep_headers": None if keep_headers is None else list(keep_headers),
                "dedup": dedup,
                "max_body_bytes": max_body_bytes,
                "max_rate": max_rate,
                "paused": paused,
            },
        ),
        repeatable=True,
    )


def drop(name: str) -> Call[None]:
    return Call(Sql("select postbus.drop_webhook_source($1)", (name,), nothing), Http(DROP, (name,), nothing))


def list_all() -> Call[list[WebhookSourceInfo]]:
    return Call(
        Sql(
            "select s.* from postbus.list_webhook_sources() as s",
            (),
            lambda found: [webhooks.webhook_source(row) for row in found],
        ),
        Http(LIST, (), lambda answer: [webhooks.webhook_source_answered(each) for each in answer.data]),
        repeatable=True,
    )


def info(name: str) -> Call[WebhookSourceInfo | None]:
    """The source with that name; None if there is none."""
    return Call(
        Sql(
            "select s.* from postbus.list_webhook_sources($1) as s",
            (name,),
            lambda found: webhooks.webhook_source(found[0]) if found else None,
        ),
        Http(INFO, (name,), lambda answer: webhooks.webhook_source_answered(answer.data)),
        repeatable=True,
    )


def to_receive(name: str) -> Call[ReceivingSource | None]:
    """The source for which a request came in. Only the server asks."""
    return Call(
        Sql(
            "select s.* from postbus_data.webhook_source_to_receive($1) as s",
            (name,),
            lambda found: ReceivingSource(*found[0]) if found else None,
        ),
        None,
        repeatable=True,
    )


def note_refusal(source_id: int, status: int, reason: str, refused_count: int) -> Call[None]:
    return Call(
        Sql(
            "select postbus_data.note_webhook_refusal($1, $2, $3, $4)",
            (source_id, status, reason, refused_count),
            nothing,
        ),
        None,
    )

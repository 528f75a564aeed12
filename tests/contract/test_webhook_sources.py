"""Webhook sources over Postgres and HTTP. What they receive is in tests/server."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

import postbus

pytestmark = pytest.mark.newest_server


@pytest.fixture
async def events(bus: Any, name: str) -> str:
    await bus.create_stream(name, dedup_window=3 * 86400)
    return name


@pytest.fixture
def source() -> str:
    return f"source-{secrets.token_hex(4)}"


async def test_a_source_keeps_what_it_was_given_and_shows_no_secrets(bus: Any, events: str, source: str) -> None:
    made = await bus.webhook_sources.create(
        source,
        events,
        kind="hmac",
        secrets=["first secret", "second secret"],
        options={"header": "X-Sig", "encoding": "base64", "handshake": "meta", "verify_token": "hidden"},
        key="shop.{id}",
        id_from="json:/event/id",
        keep_headers=["X-Kept"],
        max_body_bytes=5000,
        max_rate=3,
    )

    info = await bus.webhook_sources.info(source)

    assert made is None
    assert (info.name, info.stream, info.kind, info.secret_count) == (source, events, "hmac", 2)
    assert info.options == {"header": "X-Sig", "encoding": "base64", "handshake": "meta"}
    assert (info.key_template, info.id_from, list(info.keep_headers)) == ("shop.{id}", "json:/event/id", ["x-kept"])
    assert (info.dedup, info.max_body_bytes, info.max_rate, info.paused) == (True, 5000, 3, False)
    assert (list(info.last_refusals), "secret" in repr(info.options)) == ([], False)
    assert info in await bus.webhook_sources.list_all()
    with pytest.raises(postbus.Conflict, match="already exists"):
        await bus.webhook_sources.create(source, events, kind="github")


async def test_a_secret_is_made_where_the_receiver_chooses_it(bus: Any, events: str, source: str) -> None:
    made = await bus.webhook_sources.create(source, events, kind="github")
    assert made.startswith("whsec_")
    with pytest.raises(postbus.InvalidInput, match="secrets are missing"):
        await bus.webhook_sources.create(f"{source}-2", events, kind="stripe")


async def test_a_source_is_changed_and_dropped(bus: Any, events: str, source: str) -> None:
    await bus.webhook_sources.create(source, events, kind="github", max_rate=3, id_from="sha256")
    await bus.webhook_sources.alter(source, secrets=["a", "b"], max_rate=0, id_from="", paused=True)
    info = await bus.webhook_sources.info(source)
    assert (info.secret_count, info.max_rate, info.id_from, info.paused, info.kind) == (2, None, None, True, "github")
    await bus.webhook_sources.drop(source)
    for call in (bus.webhook_sources.info, bus.webhook_sources.drop, bus.webhook_sources.alter):
        with pytest.raises(postbus.NotFound, match=f'webhook source "{source}" does not exist'):
            await call(source)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"kind": "hmac"}, '"header" is missing'),
        ({"kind": "hmac", "options": {"header": "x", "algorithm": "md5"}}, "algorithm"),
        ({"kind": "hmac", "options": {"header": "x", "template": "x"}}, "body"),
        ({"kind": "hmac", "options": {"header": "x", "template": "{body}{other}"}}, "unknown part"),
        ({"kind": "hmac", "options": {"header": "x", "template": "{timestamp}{body}"}}, "timestamp_header"),
        ({"kind": "basic", "secrets": ["x"]}, "username"),
        ({"kind": "github", "options": {"header": "x"}}, 'no option "header"'),
        ({"kind": "github", "options": {"handshake": "x"}}, "not a handshake"),
        ({"kind": "github", "options": {"handshake": "meta"}}, "verify_token"),
        ({"kind": "standard", "secrets": ["not base64!"]}, "base64"),
        ({"kind": "none", "secrets": ["x"]}, "no secrets"),
        ({"kind": "github", "id_from": "cookie"}, "id_from"),
        ({"kind": "github", "keep_headers": ["Authorization"]}, "keep_headers|credentials"),
        ({"kind": "github", "max_body_bytes": 0}, "max_body_bytes"),
    ],
)
async def test_what_is_not_allowed_is_named(
    bus: Any, events: str, source: str, given: dict[str, Any], match: str
) -> None:
    with pytest.raises(postbus.InvalidInput, match=match):
        await bus.webhook_sources.create(source, events, **given)


async def test_a_source_needs_a_stream_and_a_window_for_what_is_repeated(bus: Any, stream: str, source: str) -> None:
    with pytest.raises(postbus.NotFound, match="nowhere"):
        await bus.webhook_sources.create(source, "nowhere", kind="github")
    with pytest.raises(postbus.InvalidInput, match="dedup_window"):
        await bus.webhook_sources.create(source, stream, kind="github")
    await bus.webhook_sources.create(source, stream, kind="github", dedup=False)

"""Those who send webhooks, by their own libraries where there are some, and sources that receive them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from datetime import UTC, datetime
from typing import Any

from gidgethub.sansio import validate_event
from slack_sdk.signature import SignatureVerifier
from standardwebhooks import Webhook
from stripe import WebhookSignature

from tests.server.serving import Api

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
Headers = dict[str, str]


class Source:
    """A source, and what it has published."""

    def __init__(self, api: Api, stream: str, kind: str, **settings: Any) -> None:
        self.api, self.stream = api, stream
        self.name = f"{kind}-{secrets.token_hex(4)}"
        given = {"name": self.name, "stream": stream, "kind": kind, **settings}
        if kind != "none":
            given.setdefault("secrets", [SECRET])
        api.data("POST", "/api/webhook-sources", given)

    def send(self, body: bytes, headers: Headers | None = None, path: str = "", method: str = "POST") -> Any:
        return self.api.request(method, f"/api/webhook/{self.name}{path}", content=body, headers=headers)

    def alter(self, **settings: Any) -> None:
        self.api.data("PATCH", f"/api/webhook-sources/{self.name}", settings)
        time.sleep(1.1)

    @property
    def messages(self) -> list[Any]:
        found: list[Any] = self.api.data("GET", f"/api/streams/{self.stream}/messages")
        return found

    @property
    def refusals(self) -> list[Any]:
        found: list[Any] = self.api.data("GET", f"/api/webhook-sources/{self.name}")["last_refusals"]
        return found


def now() -> int:
    return int(time.time())


def mac(key: bytes, signed: bytes) -> bytes:
    return hmac.digest(key, signed, hashlib.sha256)


def signed_by_standard(body: bytes, at: int | None = None) -> Headers:
    at = at or now()
    signature = Webhook(SECRET).sign("msg_1", datetime.fromtimestamp(at, UTC), body.decode())
    return {"webhook-id": "msg_1", "webhook-timestamp": str(at), "webhook-signature": f"v1a,x {signature} v1,AAAA"}


def signed_by_svix(body: bytes, at: int | None = None) -> Headers:
    return {name.replace("webhook", "svix"): value for name, value in signed_by_standard(body, at).items()}


def signed_by_stripe(body: bytes, at: int | None = None) -> Headers:
    at = at or now()
    signature = WebhookSignature._compute_signature(f"{at}.{body.decode()}", SECRET)
    return {"Stripe-Signature": f"t={at},v1={'0' * 64},v1={signature},v0=x"}


def signed_by_github(body: bytes, at: int | None = None) -> Headers:
    signature = "sha256=" + hmac.new(SECRET.encode(), msg=body, digestmod="sha256").hexdigest()
    headers = {"content-type": "application/json", "x-github-event": "push", "x-github-delivery": "d1"}
    signed = {**headers, "x-hub-signature-256": signature}
    # GitHub's own rules, by gidgethub.
    validate_event(body, signature=signature, secret=SECRET)
    return signed


def signed_by_slack(body: bytes, at: int | None = None) -> Headers:
    at = at or now()
    signature = SignatureVerifier(SECRET).generate_signature(timestamp=str(at), body=body)
    return {"X-Slack-Request-Timestamp": str(at), "X-Slack-Signature": signature or ""}


def signed_by_shopify(body: bytes, at: int | None = None) -> Headers:
    signature = base64.b64encode(mac(SECRET.encode(), body)).decode()
    return {"X-Shopify-Hmac-Sha256": signature, "X-Shopify-Topic": "orders/create", "X-Shopify-Webhook-Id": "w1"}


def signed_in_another_way(body: bytes, at: int | None = None) -> Headers:
    at = at or now()
    signature = hmac.digest(SECRET.encode(), f"{at}:".encode() + body, "sha512").hex()
    return {"X-Signature": f"v2={signature}", "X-Time": str(at), "X-Event": "e1"}


def with_a_password(body: bytes, at: int | None = None) -> Headers:
    return {"Authorization": "Basic " + base64.b64encode(f"ada:{SECRET}".encode()).decode()}


def with_a_token(body: bytes, at: int | None = None) -> Headers:
    return {"X-Token": SECRET}


OTHER = {
    "options": {
        "header": "X-Signature",
        "prefix": "v2=",
        "algorithm": "sha512",
        "template": "{timestamp}:{body}",
        "timestamp_header": "X-Time",
    },
    "id_from": "header:X-Event",
}
SENDERS: dict[str, tuple[str, Any, dict[str, Any], str | None]] = {
    "standard": ("standard", signed_by_standard, {}, "user.created.msg_1"),
    "svix": ("standard", signed_by_svix, {}, "user.created.msg_1"),
    "stripe": ("stripe", signed_by_stripe, {}, "user.created.evt_1"),
    "github": ("github", signed_by_github, {}, "push.d1"),
    "slack": ("slack", signed_by_slack, {}, "user.created.Ev1"),
    "shopify": ("shopify", signed_by_shopify, {}, "orders/create.w1"),
    "other": ("hmac", signed_in_another_way, OTHER, "user.created.e1"),
    "basic": ("basic", with_a_password, {"options": {"username": "ada"}}, None),
    "header": ("header", with_a_token, {"options": {"header": "X-Token"}}, None),
}
# Spaces, an order of keys and a number that no encoder would write so.
BODY = b'{ "type":"user.created", "id" : "evt_1","event_id":"Ev1", "amount": 1.50 , "none":null, "name":"\\u00e9"}'

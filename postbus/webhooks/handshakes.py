"""Answers by which senders find out that an endpoint wants their requests. Only sources that say so give them."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from postbus.model.webhook import WebhookKind
from postbus.webhooks.incoming import Incoming, at

# What is echoed can do no harm as a page.
_HARMLESS: Final = re.compile(r"[ !#$%(-;=?-~]{1,1024}")
_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a handshake is answered."""

    status: int
    body: bytes = b""
    content_type: str = _TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


_REFUSED: Final = Reply(400, b"this is not the handshake of this source")


def before_verification(secrets: Sequence[str], options: Mapping[str, Any], request: Incoming) -> Reply | None:
    """The reply to a handshake that comes without a signature; None if it is none."""
    handshake = options.get("handshake")
    if request.method == "GET":
        return _to_get(str(handshake), secrets, options, request)
    if request.method == "OPTIONS":
        origin = request.text("webhook-request-origin")
        if handshake != "cloudevents" or origin is None or not _HARMLESS.fullmatch(origin):
            return _REFUSED
        headers = {"webhook-allowed-origin": origin, "webhook-allowed-rate": "*"}
        return Reply(200, headers=headers)
    if handshake == "graph" and (token := request.parameter("validationToken")) is not None:
        return _echo(token)
    return None


def _to_get(handshake: str, secrets: Sequence[str], options: Mapping[str, Any], request: Incoming) -> Reply:
    if handshake == "meta":
        given = (request.parameter("hub.verify_token") or "").encode()
        if not hmac.compare_digest(given, str(options.get("verify_token", "")).encode()):
            return Reply(403, b"the token is another one")
        return _echo(request.parameter("hub.challenge"))
    if handshake == "echo":
        return _echo(request.parameter("challenge"))
    if handshake == "okta":
        challenge = request.text("x-okta-verification-challenge")
        if challenge is None or not _HARMLESS.fullmatch(challenge):
            return _REFUSED
        return _json({"verification": challenge})
    if handshake == "crc" and secrets and (token := request.parameter("crc_token")) is not None:
        digest = hmac.digest(secrets[0].encode(), token.encode(errors="replace"), hashlib.sha256)
        return _json({"response_token": f"sha256={b64encode(digest).decode()}"})
    return _REFUSED


def after_verification(
    kind: WebhookKind, secrets: Sequence[str], options: Mapping[str, Any], request: Incoming
) -> Reply | None:
    """The reply to a handshake in the body of a request that was verified; None if it is none."""
    handshake = options.get("handshake")
    if kind == "slack" and b"url_verification" in request.body[:10_000]:
        found = _parsed(request.body)
        return _echo(at(found, "/challenge")) if at(found, "/type") == "url_verification" else None
    if handshake == "eventgrid" and request.header("aeg-event-type") == b"SubscriptionValidation":
        code = at(_parsed(request.body), "/0/data/validationCode")
        return _json({"validationResponse": code}) if isinstance(code, str) and _HARMLESS.fullmatch(code) else _REFUSED
    if handshake == "zoom" and b"endpoint.url_validation" in request.body[:10_000] and secrets:
        token = at(_parsed(request.body), "/payload/plainToken")
        if not isinstance(token, str) or not _HARMLESS.fullmatch(token):
            return _REFUSED
        digest = hmac.digest(secrets[0].encode(), token.encode(), hashlib.sha256)
        return _json({"plainToken": token, "encryptedToken": digest.hex()})
    return None


def _echo(text: Any) -> Reply:
    if not isinstance(text, str) or not _HARMLESS.fullmatch(text):
        return _REFUSED
    return Reply(200, text.encode())


def _json(value: Any) -> Reply:
    return Reply(200, json.dumps(value).encode(), _JSON)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

"""Signatures of Standard Webhooks: HMAC-SHA256 of the id, the time and the body as it is sent."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Final

PREFIX: Final = "whsec_"


def new_secret() -> str:
    """A new secret: 256 random bits."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """The key in a secret, with or without its prefix.

    Raises:
        ValueError: It is not base64.
    """
    text = secret.removeprefix(PREFIX)
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


def sign(key: bytes, id: str, timestamp: int, body: bytes) -> str:
    """One signature."""
    signed = b"%s.%d.%s" % (id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def headers(keys: Iterable[bytes], id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of a signed request."""
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(sign(key, id, timestamp, body) for key in keys),
    }

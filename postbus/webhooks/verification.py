"""Finds out whether a request comes from whom it should, before anything of it is parsed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from postbus.model.webhook import WebhookKind
from postbus.webhooks import signatures
from postbus.webhooks.incoming import Incoming
from postbus.webhooks.options import PLACEHOLDER, TOLERANCE_SECONDS


class NotVerified(Exception):
    """A request is not from whom it should be. The reason is for the operator, and not for the sender."""


def verify(
    kind: WebhookKind, secrets: Sequence[str], options: Mapping[str, Any], request: Incoming, now: float
) -> None:
    """Verify a request by the bytes that were sent.

    Raises:
        NotVerified: Why it is refused.
    """
    check = _CHECKS[kind]
    try:
        check([secret.encode() for secret in secrets], options, request, now)
    except NotVerified:
        raise
    except Exception as error:
        # Whatever a stranger sends, it is no reason to let it in.
        raise NotVerified(f"the signature cannot be checked: {type(error).__name__}") from error


def verify_state(options: Mapping[str, Any], value: Any) -> None:
    """Compare the state that Microsoft Graph repeats in each notification with the one that it was given.

    Raises:
        NotVerified: It is missing, or another one.
    """
    wanted = options.get("client_state")
    if wanted is None:
        return
    found = value.get("value") if isinstance(value, dict) else None
    states = (
        [each.get("clientState") if isinstance(each, dict) else None for each in found]
        if isinstance(found, list)
        else []
    )
    if not states or not all(
        isinstance(each, str) and hmac.compare_digest(each.encode(), str(wanted).encode()) for each in states
    ):
        raise NotVerified("clientState is another one")


_Check = Callable[[list[bytes], Mapping[str, Any], Incoming, float], None]


def _standard(secrets: list[bytes], options: Mapping[str, Any], request: Incoming, now: float) -> None:
    prefix = "webhook" if request.header("webhook-id") else "svix"
    named = _needed(request, f"{prefix}-id")
    timestamp = _recent(_needed(request, f"{prefix}-timestamp"), options, now)
    given = [part[3:] for part in _needed(request, f"{prefix}-signature").split(b" ") if part.startswith(b"v1,")]
    keys = [signatures.key_of(secret.decode()) for secret in secrets]
    _matches(given, [base64.b64encode(_hmac(key, b".".join((named, timestamp, request.body)))) for key in keys])


def _stripe(secrets: list[bytes], options: Mapping[str, Any], request: Incoming, now: float) -> None:
    parts = [part.strip().partition(b"=") for part in _needed(request, "stripe-signature").split(b",")]
    times = [value for name, _, value in parts if name == b"t"]
    if len(times) != 1:
        raise NotVerified("stripe-signature has no time")
    timestamp = _recent(times[0], options, now)
    given = [value for name, _, value in parts if name == b"v1"]
    _matches(given, [_hex(_hmac(key, timestamp + b"." + request.body)) for key in secrets])


def _github(secrets: list[bytes], options: Mapping[str, Any], request: Incoming, now: float) -> None:
    given = _needed(request, "x-hub-signature-256").removeprefix(b"sha256=")
    _matches([given], [_hex(_hmac(key, request.body)) for key in secrets])


def _shopify(secrets: list[bytes], options: Mapping[str, Any], request: Incoming, now: float) -> None:
    given = _needed(request, "x-shopify-hmac-sha256")
    _matches([given], [base64.b64encode(_hmac(key, request.body)) for key in secrets])


def _slack(secrets: list[bytes], options: Mapping[str, Any], request: Incoming, now: float) -> None:
    timestamp = _recent(_needed(request, "x-slack-request-timestamp"), options, now)
    given = _needed(request, "x-slack-signature")
    signed = b"v0:" + timestamp + b":" + request.body
    _matches([given], [b"v0=" + _hex(_hmac(key, signed)) for key in secrets])


def _generic(secrets: list[bytes], options: Mapping[str, Any], request: Incoming, now: float) -> None:
    header = str(options["header"])
    prefix = str(options.get("prefix", "")).encode()
    given = _needed(request, header)
    if not given.startswith(prefix):
        raise NotVerified(f"{header} does not begin as it should")
    if "timestamp_header" in options:
        _recent(_needed(request, options["timestamp_header"]), options, now)
    algorithm = str(options.get("algorithm", "sha256"))
    signed = _signed(str(options.get("template", "{body}")), options, request)
    digests = [hmac.digest(key, signed, algorithm) for key in secrets]
    if options.get("encoding", "hex") == "hex":
        _matches([given[len(prefix) :].lower()], map(_hex, digests))
    else:
        _matches([given[len(prefix) :]], map(base64.b64encode, digests))


def _signed(template: str, options: Mapping[str, Any], request: Incoming) -> bytes:
    """What is signed: the body, with what stands around it."""
    parts: list[bytes] = []
    end = 0
    for found in PLACEHOLDER.finditer(template):
        parts.append(template[end : found.start()].encode())
        name, end = found[1], found.end()
        if name == "body":
            parts.append(request.body)
        else:
            parts.append(_needed(request, name[7:] if name.startswith("header:") else str(options[f"{name}_header"])))
    return b"".join((*parts, template[end:].encode()))


def _basic(secrets: list[bytes], options: Mapping[str, Any], request: Incoming, now: float) -> None:
    kind, _, text = _needed(request, "authorization").partition(b" ")
    if kind.lower() != b"basic":
        raise NotVerified("the authorization is not basic")
    try:
        given = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise NotVerified("the authorization is not base64") from None
    _matches([given], [str(options["username"]).encode() + b":" + password for password in secrets])


def _header(secrets: list[bytes], options: Mapping[str, Any], request: Incoming, now: float) -> None:
    given = _needed(request, str(options["header"]))
    _matches([given, given.removeprefix(b"Bearer ")], secrets)


def _none(secrets: list[bytes], options: Mapping[str, Any], request: Incoming, now: float) -> None:
    """Everybody may send."""


_CHECKS: Final[dict[WebhookKind, _Check]] = {
    "standard": _standard,
    "stripe": _stripe,
    "github": _github,
    "shopify": _shopify,
    "slack": _slack,
    "hmac": _generic,
    "basic": _basic,
    "header": _header,
    "none": _none,
}


def _needed(request: Incoming, name: str) -> bytes:
    value = request.header(name)
    if not value:
        raise NotVerified(f"{name.lower()} is missing")
    return value


def _recent(text: bytes, options: Mapping[str, Any], now: float) -> bytes:
    # Digits only: NaN and infinity would pass any comparison.
    if not text.isdigit() or len(text) > 12:
        raise NotVerified("the time is not a number of seconds")
    if abs(now - int(text)) > options.get("tolerance", TOLERANCE_SECONDS):
        raise NotVerified("the time is too long ago, or to come")
    return text


def _matches(given: Iterable[bytes], expected: Iterable[bytes]) -> None:
    """Compare all with all, in a time that tells nothing."""
    wanted = list(expected)
    found = False
    for each in list(given)[:20]:
        for other in wanted:
            found |= hmac.compare_digest(each, other)
    if not found:
        raise NotVerified("the signature does not match")


def _hmac(key: bytes, signed: bytes) -> bytes:
    return hmac.digest(key, signed, hashlib.sha256)


def _hex(digest: bytes) -> bytes:
    return digest.hex().encode()

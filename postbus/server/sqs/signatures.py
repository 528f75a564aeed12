"""Signatures of AWS, version 4: verified for the header Authorization and for presigned queries."""

from __future__ import annotations

import calendar
import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, quote

from postbus.server.requests import Request
from postbus.server.sqs.errors import SqsError

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
# How far the clocks of the two machines may be apart.
_SKEW: Final = 15 * 60
_LONGEST_PRESIGNED: Final = 7 * 24 * 60 * 60
_is_scope: Final = re.compile(r"([^/]{1,128})/(\d{8})/([a-z0-9-]{1,40})/(sqs)/aws4_request").fullmatch
_spaces: Final = re.compile(" +")
DEFAULT_REGION: Final = "us-east-1"


@dataclass(frozen=True, slots=True)
class Signed:
    """What a request says of its signature.

    Attributes:
        access_key_id: Whose key.
        date: The day of the scope.
        region: The region of the scope.
        headers: Which headers are signed.
        signature: The signature.
        time: When it was made.
        seconds: For how long it is valid, from then on.
        query: The query, without the signature.
    """

    access_key_id: str
    date: str
    region: str
    headers: tuple[str, ...]
    signature: str
    time: str
    seconds: int
    query: tuple[tuple[str, str], ...]


def region_of(authorization: str) -> str:
    """The region of a signature, verified or not, for ARNs."""
    found = re.search(r"Credential=[^/,]{1,128}/\d{8}/([a-z0-9-]{1,40})/", authorization)
    return DEFAULT_REGION if found is None else found[1]


def parse(request: Request) -> Signed | None:
    """The signature of a request; None if it has none.

    Raises:
        SqsError: It is not a signature as it should be.
    """
    query = tuple(parse_qsl(request.query.decode("latin-1"), keep_blank_values=True))
    authorization = request.header(b"authorization") or ""
    algorithm, _, rest = authorization.partition(" ")
    if algorithm == _ALGORITHM:
        parts = dict(part.strip().partition("=")[::2] for part in rest.split(","))
        return _signed(parts, request.header(b"x-amz-date") or "", 0, query)
    given = dict(query)
    if given.get("X-Amz-Algorithm") != _ALGORITHM:
        return None
    parts = {name: given.get(f"X-Amz-{name}", "") for name in ("Credential", "SignedHeaders", "Signature")}
    seconds = given.get("X-Amz-Expires", "")
    if not (seconds.isascii() and seconds.isdigit() and len(seconds) < 7 and int(seconds) <= _LONGEST_PRESIGNED):
        raise _incomplete()
    unsigned = tuple(each for each in query if each[0] != "X-Amz-Signature")
    return _signed(parts, given.get("X-Amz-Date", ""), int(seconds), unsigned)


def verify(signed: Signed, secret: str, request: Request, body: bytes, now: float) -> None:
    """Refuse a request that was not signed with a secret, or is too old.

    Raises:
        SqsError: InvalidSignatureException.
    """
    made_at = calendar.timegm(time.strptime(signed.time, "%Y%m%dT%H%M%SZ"))
    if not made_at - _SKEW <= now <= made_at + max(signed.seconds, _SKEW):
        raise SqsError(
            "InvalidSignatureException", f"Signature expired: {signed.time} is not now; are both clocks right?"
        )
    scope = f"{signed.date}/{signed.region}/sqs/aws4_request"
    canonical = hashlib.sha256(_canonical(signed, request, body).encode("latin-1")).hexdigest()
    text = f"{_ALGORITHM}\n{signed.time}\n{scope}\n{canonical}"
    key = f"AWS4{secret}".encode()
    for part in (signed.date, signed.region, "sqs", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    expected = hmac.digest(key, text.encode(), "sha256").hex()
    if not hmac.compare_digest(expected.encode(), signed.signature.encode()):
        raise SqsError(
            "InvalidSignatureException",
            "The request signature we calculated does not match the signature you provided. "
            "Check your AWS Secret Access Key and signing method.",
        )


def _signed(parts: Mapping[str, str], made_at: str, seconds: int, query: tuple[tuple[str, str], ...]) -> Signed:
    scope = _is_scope(parts.get("Credential", ""))
    headers = tuple(parts.get("SignedHeaders", "").split(";"))
    is_time = re.fullmatch(r"\d{8}T([01]\d|2[0-3])[0-5]\d[0-5]\dZ", made_at)
    if scope is None or is_time is None or not made_at.startswith(scope[2]) or "host" not in headers:
        raise _incomplete()
    try:
        time.strptime(made_at, "%Y%m%dT%H%M%SZ")
    except ValueError:
        raise _incomplete() from None
    return Signed(scope[1], scope[2], scope[3], headers, parts.get("Signature", ""), made_at, seconds, query)


def _canonical(signed: Signed, request: Request, body: bytes) -> str:
    """What is signed, in the form that both sides agree on."""
    if request.header(b"x-amz-target") is not None and "x-amz-target" not in signed.headers:
        # Otherwise a signed request could be sent again as another operation.
        raise _incomplete()
    query = "&".join(
        f"{name}={value}"
        for name, value in sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in signed.query)
    )
    values = ((name, request.header(name.encode("latin-1", "replace")) or "") for name in signed.headers)
    headers = "".join(f"{name}:{_spaces.sub(' ', value.strip())}\n" for name, value in values)
    return "\n".join(
        (
            request.method,
            quote(request.raw_path, safe="/~"),
            query,
            headers,
            ";".join(signed.headers),
            hashlib.sha256(body).hexdigest(),
        )
    )


def _incomplete() -> SqsError:
    return SqsError(
        "InvalidSignatureException",
        "The signature must name a credential of service sqs, the time as X-Amz-Date, and signed headers, among them host "
        "and, if it is there, x-amz-target.",
    )

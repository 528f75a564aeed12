"""Makes a message of a verified request: its data as it was sent, its key, its id and some of its headers."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import orjson

from postbus.model.message import Message
from postbus.model.webhook import ReceivingSource, WebhookKind
from postbus.webhooks.incoming import Incoming, as_word, at

_ID_FROM: Final[dict[WebhookKind, str]] = {
    "standard": "header:webhook-id",
    "stripe": "json:/id",
    "github": "header:x-github-delivery",
    "shopify": "header:x-shopify-webhook-id",
    "slack": "json:/event_id",
}
_TYPE_FROM: Final[dict[WebhookKind, tuple[str, ...]]] = {
    "github": ("header:x-github-event",),
    "shopify": ("header:x-shopify-topic",),
    "slack": ("json:/event/type", "json:/type"),
}
_USUAL_TYPE: Final = ("json:/type", "header:ce-type")
# With the signature and what it covers, a request can be verified again.
_KEPT: Final[dict[WebhookKind, tuple[str, ...]]] = {
    "standard": (
        *("webhook-id", "webhook-timestamp", "webhook-signature", "svix-id", "svix-timestamp", "svix-signature"),
    ),
    "stripe": ("stripe-signature",),
    "github": ("x-github-delivery", "x-github-event", "x-github-hook-id", "x-hub-signature-256"),
    "shopify": (
        *("x-shopify-webhook-id", "x-shopify-event-id", "x-shopify-topic", "x-shopify-shop-domain"),
        *("x-shopify-triggered-at", "x-shopify-api-version", "x-shopify-hmac-sha256"),
    ),
    "slack": ("x-slack-request-timestamp", "x-slack-signature", "x-slack-retry-num", "x-slack-retry-reason"),
}
_NOT_IN_KEYS: Final = re.compile(r"[\x00-\x20\x7f*>.]")
_PLACEHOLDER: Final = re.compile(r"\{(source|type|id|sha256|header:[A-Za-z0-9_-]+|json:/[^}]+)\}")
_LONGEST_TOKEN: Final = 80
_LONGEST_KEY: Final = 255
_LONGEST_ID: Final = 150
_decode: Final = msgspec.json.Decoder().decode


class NotAcceptable(Exception):
    """A verified request that cannot become a message of its stream.

    Attributes:
        status: The answer.
        reason: Why.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Event:
    """A verified request, unpacked."""

    request: Incoming
    body: bytes
    value: Any

    @property
    def is_json(self) -> bool:
        return self.value is not msgspec.UNSET

    def word(self, place: str) -> str | None:
        """What lies at header:NAME or json:/POINTER, as text."""
        if place.startswith("header:"):
            return self.request.text(place[7:])
        return as_word(at(self.value, place[5:])) if self.is_json else None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.request.body).hexdigest()


def unpacked(request: Incoming, limit: int) -> Event:
    """Unpack a body, and parse it if it is JSON.

    Raises:
        NotAcceptable: It is packed in a way that is not known, or is too large when it is unpacked.
    """
    encoding = request.header("content-encoding").strip().lower()
    body = request.body
    if encoding in (b"gzip", b"x-gzip", b"deflate"):
        body = _inflated(body, limit)
    elif encoding not in (b"", b"identity"):
        raise NotAcceptable(415, "the content-encoding is not gzip or deflate")
    value: Any = msgspec.UNSET
    # Not everybody sends JSON.
    with contextlib.suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        value = _decode(body)
    return Event(request, body, value)


def _inflated(body: bytes, limit: int) -> bytes:
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        content = unpacking.decompress(body, limit + 1)
    except zlib.error:
        raise NotAcceptable(400, "the body is not packed as its content-encoding says") from None
    if len(content) > limit or unpacking.unconsumed_tail:
        raise NotAcceptable(413, f"the unpacked body is larger than {limit} bytes")
    return content


def message_of(name: str, source: ReceivingSource, event: Event) -> Message:
    """The message of an event.

    Raises:
        NotAcceptable: The stream cannot hold it.
    """
    named = (_id_of(source, event) or event.sha256)[:4000]
    return Message(
        key=_key_of(name, source, event, named),
        data=_data_of(source, event),
        headers=_headers_of(source, event),
        dedup_id=_dedup_id(name, named) if source.dedup else None,
    )


def _id_of(source: ReceivingSource, event: Event) -> str | None:
    place = source.id_from or _ID_FROM.get(source.kind)
    if place == "sha256":
        return None
    if place is not None:
        found = event.word(place)
        if found is None and source.kind == "standard":
            found = event.word("header:svix-id")
        return found
    return event.word("header:ce-id")


def _dedup_id(name: str, id: str) -> str:
    """An id for the stream's window; a long one by its digest."""
    safe = (
        id if len(id) <= _LONGEST_ID and id.isprintable() else hashlib.sha256(id.encode("utf-8", "replace")).hexdigest()
    )
    return f"{name}:{safe}"


def _key_of(name: str, source: ReceivingSource, event: Event, id: str) -> str:
    def part(found: re.Match[str]) -> str:
        place = found[1]
        if place == "source":
            return name
        value: str | None = id
        if place == "type":
            value = _type_of(source.kind, event)
        elif place == "sha256":
            value = event.sha256
        elif place != "id":
            value = event.word(place)
        return token(value or "none")

    key = _PLACEHOLDER.sub(part, source.key_template)
    if len(key.encode()) > _LONGEST_KEY:
        key = f"{token(key)[:100]}.{hashlib.sha256(key.encode()).hexdigest()[:32]}"
    # What the template itself may hold between its parts.
    return ".".join(token(each) if _NOT_IN_KEYS.search(each) or not each else each for each in key.split("."))


def token(text: str) -> str:
    """A text as one token of a key: what a key may not have is replaced."""
    safe = _NOT_IN_KEYS.sub("_", text).encode("utf-8", "replace").decode()
    if len(safe) > _LONGEST_TOKEN:
        safe = f"{safe[: _LONGEST_TOKEN - 33]}-{hashlib.sha256(safe.encode()).hexdigest()[:32]}"
    return safe or "none"


def _type_of(kind: WebhookKind, event: Event) -> str:
    for place in _TYPE_FROM.get(kind, _USUAL_TYPE):
        if found := event.word(place):
            return found
    return "event"


def _data_of(source: ReceivingSource, event: Event) -> Any:
    if source.data_type == "bytes":
        return event.body
    if source.data_type == "text":
        try:
            text = event.body.decode()
        except UnicodeDecodeError:
            raise NotAcceptable(415, "the body is not UTF-8, and the stream holds text") from None
        if "\x00" in text:
            raise NotAcceptable(415, "the body has a NUL character, and the stream holds text")
        return text
    if event.is_json:
        # As it was sent, to the last space: so its signature can be checked again.
        return orjson.Fragment(event.body)
    return wrapped(event)


def wrapped(event: Event) -> Mapping[str, str]:
    """What is not JSON, for a stream of JSON."""
    content_type = event.request.text("content-type") or "application/octet-stream"
    return {"content_type": content_type, "body_base64": base64.b64encode(event.body).decode()}


def _headers_of(source: ReceivingSource, event: Event) -> dict[str, str]:
    names: Sequence[str] = ("content-type", *_KEPT.get(source.kind, ()), *source.keep_headers)
    found = {each: event.request.text(each) for each in names}
    return {each: value for each, value in found.items() if value is not None}

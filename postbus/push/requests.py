"""The requests to an endpoint: headers, signature and body."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from postbus import __version__, tracing
from postbus.model.delivery import Delivery
from postbus.model.push import PushEndpoint
from postbus.webhooks import signatures

_TYPES: Final = {"json": "application/json", "text": "text/plain; charset=utf-8", "bytes": "application/octet-stream"}
_JSON: Final = _TYPES["json"]
# These go along as they were published, so that a trace goes on at the endpoint.
_TRACE: Final = ("traceparent", "tracestate")


@dataclass(frozen=True, slots=True)
class PushRequest:
    """A request before it is signed, which each attempt does anew.

    Attributes:
        id: The webhook-id: the same for each attempt to send the same messages.
        body: The body.
        headers: All headers but those of the signature.
    """

    id: str
    body: bytes
    headers: dict[str, str]

    def signed(self, endpoint: PushEndpoint, timestamp: int) -> dict[str, str]:
        """The headers with a signature for each secret."""
        keys = map(signatures.key_of, endpoint.secrets)
        return self.headers | signatures.headers(keys, self.id, timestamp, self.body)


def item_id(endpoint: PushEndpoint, seq: int) -> str:
    """The id of a message, for those who receive it."""
    return f"msg_{endpoint.stream_id}_{seq}"


def of_delivery(endpoint: PushEndpoint, delivery: Delivery) -> PushRequest:
    """The request for one message."""
    headers = _headers(endpoint)
    if delivery.key is not None:
        headers["postbus-key"] = _printable(delivery.key)
    headers["postbus-attempt"] = str(delivery.attempt)
    given = delivery.headers or {}
    if tracing.is_on() or "traceparent" in given:
        headers |= {name: _printable(given[name]) for name in _TRACE if name in given}
    if endpoint.mode == "raw":
        data = delivery.data
        body = data.encode() if isinstance(data, str) else bytes(data)
        kind = _TYPES[endpoint.data_type]
        headers["content-type"] = _printable(given.get("content-type", kind)) if endpoint.data_type == "bytes" else kind
    else:
        body = _item(endpoint, delivery).encode()
    return PushRequest(item_id(endpoint, delivery.seq), body, headers)


def of_batch(endpoint: PushEndpoint, deliveries: Sequence[Delivery]) -> PushRequest:
    """The request for several messages. Its id is made from theirs, so that the same messages have the same."""
    items = ",".join(_item(endpoint, each) for each in deliveries)
    ids = ",".join(str(each.seq) for each in deliveries)
    digest = hashlib.sha256(ids.encode()).hexdigest()[:16]
    headers = _headers(endpoint) | {"postbus-attempt": str(max(each.attempt for each in deliveries))}
    return PushRequest(
        f"batch_{endpoint.stream_id}_{deliveries[0].seq}_{digest}", f'{{"data":[{items}]}}'.encode(), headers
    )


def of_test(endpoint: PushEndpoint, test_id: int, stream: str, consumer: str) -> PushRequest:
    """The request of a test, in the form of the endpoint's mode."""
    now = datetime.now(UTC)
    event = {"type": "postbus.test", "timestamp": _time(now), "data": {"stream": stream, "consumer": consumer}}
    body: Any = event
    if endpoint.mode == "batch":
        body = {"data": [{"id": f"msg_test_{test_id}", "key": "postbus.test", "data": event}]}
    elif endpoint.mode == "sequin":
        body = {"data": event, "key": "postbus.test"}
    headers = _headers(endpoint) | {"postbus-attempt": "1", "postbus-key": "postbus.test"}
    return PushRequest(f"msg_test_{test_id}", json.dumps(body, separators=(",", ":")).encode(), headers)


def failed_items(endpoint: PushEndpoint, deliveries: Sequence[Delivery], body: bytes) -> list[Delivery] | None:
    """Which messages of a batch an endpoint named as failed: {"batchItemFailures": [{"itemIdentifier": id}]}.

    Returns:
        None if it named one that was not in the batch, or none properly: then all have failed.
    """
    if b"batchItemFailures" not in body:
        return []
    try:
        named = {str(each["itemIdentifier"]) for each in json.loads(body)["batchItemFailures"] or ()}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    by_id = {item_id(endpoint, each.seq): each for each in deliveries}
    return [each for name, each in by_id.items() if name in named] if named <= by_id.keys() else None


def _headers(endpoint: PushEndpoint) -> dict[str, str]:
    return {
        "user-agent": f"Postbus/{__version__}",
        "content-type": _JSON,
        **{k.lower(): v for k, v in endpoint.headers.items()},
    }


def _item(endpoint: PushEndpoint, delivery: Delivery) -> str:
    """A message as JSON, with its data as it is stored."""
    data, key = _data(endpoint, delivery), json.dumps(delivery.key)
    if endpoint.mode == "sequin":
        return f'{{"data":{data},"key":{key}}}'
    if endpoint.mode == "standard":
        headers = delivery.headers or {}
        kind = headers.get("type") or headers.get("ce-type") or delivery.key or "message"
        return f'{{"type":{json.dumps(kind)},"timestamp":"{_time(delivery.published_at)}","data":{data}}}'
    return (
        f'{{"id":"{item_id(endpoint, delivery.seq)}","key":{key},"timestamp":"{_time(delivery.published_at)}",'
        f'"attempt":{delivery.attempt},"data":{data}}}'
    )


def _data(endpoint: PushEndpoint, delivery: Delivery) -> str:
    if endpoint.data_type == "json":
        return str(delivery.data)
    if endpoint.data_type == "bytes":
        return json.dumps(base64.b64encode(delivery.data).decode())
    return json.dumps(delivery.data)


def _time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _printable(text: str) -> str:
    """A value that a header may have: what is not printable ASCII is encoded as in a URL."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each if " " <= each <= "~" else "".join(f"%{byte:02X}" for byte in each.encode("utf-8", "replace"))
        for each in text
    )

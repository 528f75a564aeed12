"""Our requests are verified by the libraries that receivers use, and refused when they were altered."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import standardwebhooks
import svix.webhooks

from postbus.model.delivery import Delivery
from postbus.model.push import PushEndpoint
from postbus.push import requests
from postbus.webhooks.signatures import new_secret

OLD, NEW = new_secret(), new_secret()
ENDPOINT = PushEndpoint(
    stream_id=7,
    data_type="json",
    order="none",
    ack_wait=timedelta(seconds=35),
    has_backoff=False,
    url="https://example.com/",
    headers={"X-A": "1"},
    mode="raw",
    batch_size=10,
    timeout=timedelta(seconds=20),
    concurrency=10,
    max_rate=None,
    retry_schedule=(),
    permanent_statuses=(),
    keep_successes=False,
    secrets=(NEW, OLD),
    secrets_change_in=None,
)
LIBRARIES: list[Callable[[str], Any]] = [standardwebhooks.Webhook, svix.webhooks.Webhook]
REFUSED = (standardwebhooks.WebhookVerificationError, svix.webhooks.WebhookVerificationError)


def delivery(data: Any, **more: Any) -> Delivery:
    given = {"ack_id": "t-1", "attempt": 2, "seq": 12, "partition": 0, "key": "a.b", "data": data, "headers": None}
    return Delivery(**{**given, "published_at": datetime(2026, 1, 31, 12, tzinfo=UTC), **more})


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("mode", ["raw", "standard", "sequin", "batch"])
@pytest.mark.parametrize("secret", [OLD, NEW], ids=["old", "new"])
def test_a_request_is_verified_with_each_secret(library: Callable[[str], Any], mode: Any, secret: str) -> None:
    endpoint = dataclasses.replace(ENDPOINT, mode=mode)
    data = '{"a": 1.50,  "ü": null}'
    one = delivery(data)
    request = requests.of_batch(endpoint, [one]) if mode == "batch" else requests.of_delivery(endpoint, one)
    signed = request.signed(endpoint, int(time.time()))

    # One of them returns what it has parsed; both raise what is not verified.
    assert library(secret).verify(request.body, signed) in (None, json.loads(request.body))
    # The data is as it is stored, to the last space.
    assert data.encode() in request.body


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("altered", ["body", "id", "time", "old", "future", "secret"])
def test_what_was_altered_is_refused(library: Callable[[str], Any], altered: str) -> None:
    at = int(time.time()) + {"old": -1000, "future": 1000}.get(altered, 0)
    request = requests.of_delivery(ENDPOINT, delivery('{"a": 1}'))
    signed = request.signed(ENDPOINT, at)
    body = request.body
    if altered == "body":
        body = body.replace(b"1", b"2")
    elif altered == "id":
        signed["webhook-id"] += "3"
    elif altered == "time":
        signed["webhook-timestamp"] = str(at + 1)
    with pytest.raises(REFUSED):
        library(new_secret() if altered == "secret" else NEW).verify(body, signed)


def test_ids_have_no_dots_and_are_those_of_the_messages() -> None:
    first = requests.of_delivery(ENDPOINT, delivery("1"))
    again = requests.of_delivery(ENDPOINT, delivery("1", attempt=5, ack_id="t-2"))
    other = requests.of_delivery(ENDPOINT, delivery("1", seq=13))
    assert first.id == again.id == "msg_7_12"
    assert other.id == "msg_7_13"
    batch = [delivery("1"), delivery("2", seq=13)]
    assert requests.of_batch(ENDPOINT, batch).id == requests.of_batch(ENDPOINT, list(batch)).id
    assert requests.of_batch(ENDPOINT, batch).id != requests.of_batch(ENDPOINT, batch[:1]).id
    assert "." not in requests.of_batch(ENDPOINT, batch).id


def test_each_mode_has_its_body() -> None:
    bodies = {
        mode: json.loads(requests.of_delivery(dataclasses.replace(ENDPOINT, mode=mode), delivery('{"n": 1}')).body)
        for mode in ("raw", "standard", "sequin")
    }
    assert bodies == {
        "raw": {"n": 1},
        "standard": {"type": "a.b", "timestamp": "2026-01-31T12:00:00.000Z", "data": {"n": 1}},
        "sequin": {"data": {"n": 1}, "key": "a.b"},
    }
    batch = json.loads(requests.of_batch(dataclasses.replace(ENDPOINT, mode="batch"), [delivery('{"n": 1}')]).body)
    assert batch["data"] == [
        {"id": "msg_7_12", "key": "a.b", "timestamp": "2026-01-31T12:00:00.000Z", "attempt": 2, "data": {"n": 1}}
    ]


@pytest.mark.parametrize(
    ("data_type", "data", "kind", "body"),
    [
        ("text", "é", "text/plain; charset=utf-8", "é".encode()),
        ("bytes", b"\xff\x00", "application/octet-stream", b"\xff\x00"),
        ("json", "null", "application/json", b"null"),
    ],
)
def test_other_data_is_sent_as_it_is(data_type: str, data: Any, kind: str, body: bytes) -> None:
    endpoint = dataclasses.replace(ENDPOINT, data_type=data_type)
    request = requests.of_delivery(endpoint, delivery(data, key="ключ", headers={"traceparent": "00-a-b-01\r\nx: y"}))
    assert (request.headers["content-type"], request.body) == (kind, body)
    assert request.headers["postbus-key"].isascii()
    assert "\n" not in request.headers["traceparent"]
    in_json = requests.of_delivery(dataclasses.replace(endpoint, mode="sequin"), delivery(data))
    assert set(json.loads(in_json.body)) == {"data", "key"}


def test_what_failed_is_named_by_id_or_all_has_failed() -> None:
    batch = [delivery("1"), delivery("2", seq=13)]

    def failed(body: bytes) -> list[int] | None:
        found = requests.failed_items(ENDPOINT, batch, body)
        return None if found is None else [each.seq for each in found]

    assert failed(b"") == failed(b"ok") == failed(b'{"batchItemFailures": []}') == []
    assert failed(b'{"batchItemFailures": [{"itemIdentifier": "msg_7_13"}]}') == [13]
    assert failed(b'{"batchItemFailures": [{"itemIdentifier": "msg_8_13"}]}') is None
    assert failed(b'{"batchItemFailures": [{}]}') is None
    assert failed(b'{"batchItemFailures": 1}') is None


def test_nothing_shows_the_secrets_of_an_endpoint() -> None:
    assert NEW not in repr(ENDPOINT)
    assert "key=" not in repr(dataclasses.replace(ENDPOINT, url="https://example.com/?key=secret"))

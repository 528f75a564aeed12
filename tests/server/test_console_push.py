"""Endpoints in the console: set, changed, given a new secret and removed by forms; secrets are shown once."""

from __future__ import annotations

import hashlib
import hmac
import re
from html import unescape

import postbus
from tests.server.conftest import Stream
from tests.server.serving import Api, serving
from tests.server.test_console import logged_in, page, send, token


def secret_in(text: str) -> str:
    (found,) = re.findall(r"whsec_[\w+/=]+", unescape(text))
    return str(found)


def test_an_endpoint_is_set_changed_and_removed(api: Api, orders: Stream, url: str) -> None:
    path = f"streams/{orders.name}/consumers/billing/push"
    assert "No endpoint" in page(api, path)

    made = send(api, path, act="set", url="https://example.com/hook?key=s3cret", max_rate="5", headers="x-shop: ada")

    assert made.status_code == 200
    first = secret_in(made.text)
    shown = page(api, path)
    assert first not in shown
    assert "s3cret" not in shown
    with postbus.connect(url, upkeep=False) as bus:
        push = bus.consumer(orders.name, "billing").push
        info = push.info()
        assert (info.url, info.max_rate, info.header_names) == ("https://example.com/hook?key=s3cret", 5, ["x-shop"])

        change = {
            "mode": "standard",
            "concurrency": "3",
            "timeout": "10s",
            "retry_schedule": "5s, 1m",
            "keep_successes": "yes",
        }
        assert send(api, path, act="set", permanent_statuses="400, 422", **change).status_code == 303
        info = push.info()
        assert (info.url, info.mode, info.concurrency) == ("https://example.com/hook?key=s3cret", "standard", 3)
        assert ([each.total_seconds() for each in info.retry_schedule], info.max_rate) == ([5, 60], None)
        assert (list(info.permanent_statuses), info.keep_successes) == ([400, 422], True)

        assert secret_in(send(api, path, act="rotate").text) != first
        assert push.info().secret_count == 2
        assert send(api, path, act="drop", name="bill").status_code == 400
        assert send(api, path, act="drop", name="billing").status_code == 303
    assert "No endpoint" in page(api, path)


def test_a_webhook_source_is_created_and_its_secret_shown_once(api: Api, orders: Stream, url: str) -> None:
    stream = f"in-{orders.name}"
    api.data("POST", "/api/streams", {"name": stream, "dedup_window_ms": 3 * 86_400_000})
    form = {"act": "create-webhook", "stream": stream}

    made = send(api, "sources", name=f"hub-{stream}", kind="github", max_rate="50", **form)

    secret = secret_in(made.text)
    assert secret not in page(api, "sources")
    body = b'{"id": 7}'
    signature = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"x-hub-signature-256": signature, "x-github-delivery": "one", "x-github-event": "ping"}
    sent = api.request("POST", f"/api/webhook/hub-{stream}", content=body, headers=headers)
    assert sent.status_code == 200, sent.text
    with postbus.connect(url, upkeep=False) as bus:
        assert [each.data for each in bus.read(stream)] == [{"id": 7}]

    code = send(api, "sources", name="x", kind="stripe", secret="s3cret", as_code="1", **form).text
    assert ("s3cret" in code, "YOUR_SECRET" in code) == (False, True)
    signed = send(api, "sources", name=f"own-{stream}", kind="hmac", secret="s3cret", options="header=X-Sig", **form)
    assert (signed.status_code, "s3cret" in page(api, "sources")) == (303, False)
    for wrong in ({"kind": "stripe"}, {"kind": "hmac", "options": "header"}, {"kind": "paypal"}):
        answer = send(api, "sources", name="wrong", **form, **wrong)
        assert answer.status_code in (400, 422), wrong


def test_an_endpoint_that_the_server_may_not_reach_is_refused(api: Api, orders: Stream) -> None:
    path = f"streams/{orders.name}/consumers/billing/push"
    for wrong in ("http://example.com/", "https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest"):
        answer = send(api, path, act="set", url=wrong)
        assert answer.status_code in (400, 422), wrong
    assert "No endpoint" in page(api, path)


def test_a_token_that_only_consumes_sets_no_endpoint(url: str, orders: Stream) -> None:
    path = f"streams/{orders.name}/consumers/billing/push"
    with serving(url, require_tokens=True) as closed:
        logged_in(closed, token(url, "consume"))
        assert closed.get(f"/console/{path}").status_code == 404
        assert send(closed, path, act="set", url="https://example.com/").status_code == 403

"""Endpoints of push consumers over HTTP, and servers that send."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.server.serving import Api, serving
from tests.waiting import until


class Hooks(ThreadingHTTPServer):
    """An endpoint that notes what it is sent."""

    def __init__(self) -> None:
        self.received: list[tuple[str, bytes]] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Hooks

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.received.append((self.headers["webhook-id"], body))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *values: object) -> None:
        pass


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with Hooks() as hooks:
        thread = threading.Thread(target=hooks.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield hooks
        hooks.shutdown()
        thread.join()


def consumer_of(api: Api) -> str:
    name = f"orders-{secrets.token_hex(6)}"
    api.data("POST", "/api/streams", {"name": name})
    api.data("POST", f"/api/streams/{name}/consumers", {"name": "hook"})
    return f"/api/streams/{name}/consumers/hook"


def test_two_servers_send_each_message_once_to_an_endpoint_that_they_may_reach(fresh_url: str, hooks: Hooks) -> None:
    more: dict[str, Any] = {"push": True, "push_allowed": ("127.0.0.0/8",)}
    with serving(fresh_url, **more) as one, serving(fresh_url, **more) as other:
        path = consumer_of(one)
        stream = path.split("/")[3]
        created = one.data("POST", f"{path}/push", {"url": f"http://127.0.0.1:{hooks.server_port}/"})
        assert created["secret"].startswith("whsec_")
        messages = [{"key": f"k.{n}", "data": {"n": n}} for n in range(200)]
        seqs = other.data("POST", f"/api/streams/{stream}/messages", {"messages": messages})["seqs"]

        until(lambda: len(hooks.received) >= 200, "all are sent")
        until(lambda: one.data("GET", f"{path}/stats")["backlog"] == 0, "all are acked")
        assert sorted(int(each.rpartition("_")[2]) for each, _ in hooks.received) == seqs
        assert "secret" not in one.data("GET", f"{path}/push")
        page = one.get("/metrics").text
        assert f'postbus_push_paused{{consumer="hook",stream="{stream}"}} 0' in page


@pytest.mark.parametrize(
    "target",
    ["http://example.com/", "https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest/meta-data/"],
)
def test_a_server_refuses_an_endpoint_that_it_may_not_reach(api: Api, target: str) -> None:
    path = consumer_of(api)
    answer = api.post(f"{path}/push", {"url": target})
    assert answer.status_code == 422
    assert "--push-allow" in answer.json()["hint"]
    assert api.get(f"{path}/push").status_code == 404


def test_a_token_to_consume_sees_an_endpoint_and_may_not_change_it(url: str) -> None:
    with serving(url) as open_server, serving(url, require_tokens=True) as api:
        path = consumer_of(open_server)
        open_server.data("POST", f"{path}/push", {"url": "https://example.com/"})
        token = open_server.data(
            "POST", "/api/tokens", {"name": "c", "scopes": ["consume"], "streams": [path.split("/")[3]]}
        )["token"]
        own = {"headers": {"Authorization": f"Bearer {token}"}}
        assert api.get(f"{path}/push", **own).status_code == 200
        assert api.get(f"{path}/push/attempts", **own).status_code == 200
        for method, rest in (
            *(("POST", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume")),
            *(("POST", "/secret"), ("POST", "/test"), ("POST", "/resend")),
        ):
            assert api.request(method, f"{path}/push{rest}", json={"url": "https://a.b/"}, **own).status_code == 403
        for method, where in (("GET", "/api/push"), ("GET", "/api/webhook-sources"), ("POST", "/api/webhook-sources")):
            assert api.request(method, where, json={}, **own).status_code == 403


def test_webhooks_are_counted_by_what_became_of_them(api: Api) -> None:
    stream = f"events-{secrets.token_hex(6)}"
    api.data("POST", "/api/streams", {"name": stream, "dedup_window_ms": 86_400_000})
    api.data(
        "POST",
        "/api/webhook-sources",
        {"name": stream, "stream": stream, "kind": "none", "key_template": "{source}.{sha256}"},
    )
    # As in Sequin: a key of the name and the digest, the same payload once, 404 for another name.
    for _ in range(2):
        assert api.post(f"/api/webhook/{stream}", {"a": 1}).status_code == 200
    assert api.post("/api/webhook/a.b").status_code == api.post("/api/webhook/unknown").status_code == 404
    (message,) = api.data("GET", f"/api/streams/{stream}/messages")
    digest = hashlib.sha256(b'{"a":1}').hexdigest()
    assert message["key"] == f"{stream}.{digest}"
    page = api.get("/metrics").text
    for outcome in ("published", "duplicate"):
        assert f'postbus_webhooks_received_total{{outcome="{outcome}",source="{stream}"}} 1' in page

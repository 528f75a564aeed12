"""Errors: always a summary, a code and a hint, with the right status, and never a trace."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import postbus
from tests.server.conftest import Stream
from tests.server.gate import Gate
from tests.server.serving import Api, serving
from tests.waiting import until


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    body: dict[str, Any] = answer.json()
    assert body["summary"]
    assert body["hint"]
    assert set(body) <= {"summary", "code", "hint", "validation_errors", "advice"}
    assert "Traceback" not in answer.text
    assert answer.headers["x-request-id"]
    return body


def test_an_unknown_resource_is_404(api: Api, orders: Stream) -> None:
    for path in (
        "/api/streams/none",
        "/api/streams/99999999",
        "/api/streams/none/messages",
        "/api/streams/none/consumers",
        f"{orders.path}/consumers/none",
        f"{orders.path}/consumers/none/receive",
        f"{orders.path}/consumers/99999999/receive",
        "/api/streams/%00",
        "/api/streams/a%20b",
        "/nothing",
    ):
        problem(api.get(path), 404, "not_found")


def test_creating_twice_is_409(api: Api, orders: Stream) -> None:
    problem(api.post("/api/streams", {"name": orders.name}), 409, "conflict")
    problem(api.post(f"{orders.path}/consumers", {"name": "billing"}), 409, "conflict")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a b"),
        ("name", None),
        ("kind", "push"),
        ("ack_wait_ms", 0),
        ("max_deliver", 0),
        ("max_ack_pending", "many"),
        ("filter_key_pattern", "a.>.b"),
        ("filter_headers", {"a": 1}),
    ],
)
def test_an_invalid_setting_is_422_and_named(api: Api, orders: Stream, field: str, value: Any) -> None:
    refused = problem(api.post(f"{orders.path}/consumers", {"name": "new", field: value}), 422, "invalid_input")
    assert field in next(iter(refused["validation_errors"]))


def test_a_wrong_json_path_is_422(api: Api, orders: Stream) -> None:
    problem(api.post(f"{orders.path}/consumers", {"name": "new", "filter_data": "$$$ ("}), 422, "invalid_input")


def test_an_unknown_field_is_refused_with_the_nearest_known(api: Api, orders: Stream) -> None:
    refused = problem(api.post(f"{orders.path}/consumers", {"name": "n", "max_delivr": 3}), 422, "invalid_input")
    assert refused["hint"] == 'did you mean "max_deliver"?'
    refused = problem(api.get(f"{orders.billing}/receive?batch=3"), 400, "invalid_input")
    assert refused["hint"] == 'did you mean "batch_size"?'


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b'"', b"\xff\xfe", b"[" * 100_000, b'{"messages": "\\ud800"}']
)
def test_a_body_that_is_not_json_is_400(api: Api, orders: Stream, body: bytes) -> None:
    answer = api.request("POST", f"{orders.path}/messages", content=body)
    assert answer.status_code == 400
    assert answer.json()["summary"]


def test_too_much_is_413_also_without_a_length(api: Api, orders: Stream) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * 1024 * 1024

    problem(api.request("POST", f"{orders.path}/messages", content=b" " * (16 * 1024 * 1024 + 1)), 413, "too_large")
    problem(api.request("POST", f"{orders.path}/messages", content=endless()), 413, "too_large")
    many = {"messages": [{"key": "k", "data": 1}] * 10_001}
    assert api.post(f"{orders.path}/messages", many).status_code == 400
    assert api.data("GET", f"{orders.path}/messages") == []


def test_an_unsupported_method_is_405_and_lists_the_supported_ones(api: Api, orders: Stream) -> None:
    answer = api.request("PUT", orders.path)
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, GET, PATCH"


def test_a_truncated_body_affects_no_other_request(api: Api, orders: Stream) -> None:
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as line:
        line.sendall(f"POST {orders.path}/messages HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\n{{".encode())
    assert api.data("GET", f"{orders.path}/messages") == []


def test_request_ids_are_taken_over_when_they_are_decent(api: Api) -> None:
    assert api.get("/health", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert api.get("/health", headers={"x-request-id": "a b"}).headers["x-request-id"] != "a b"


def test_an_open_server_refuses_web_pages_of_other_sites(api: Api) -> None:
    assert api.get("/api/streams", headers={"origin": "https://evil.example"}).status_code == 403
    assert api.get("/api/streams", headers={"host": "evil.example"}).status_code == 403
    assert api.get("/api/streams", headers={"origin": api.url}).status_code == 200


def test_a_check_of_health_leaves_no_line_in_the_log(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(url, access_log=True) as api:
        assert api.get("/health").status_code == 200
        assert api.get("/health/live").status_code == 200
        assert api.get("/api/streams").status_code == 200
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    assert [line["path"] for line in lines if line["event"] == "request"] == ["/api/streams"]


def test_an_internal_error_is_500_without_details(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(url, access_log=True) as api:

        async def broken(_: str) -> str:
            raise RuntimeError("secret")

        api.server.state.names.stream_name = broken  # type: ignore[method-assign,assignment]
        answer = api.get("/api/streams/orders")
    assert "secret" not in answer.text
    problem(answer, 500, "internal")
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    failure = next(line for line in lines if line["event"] == "internal error")
    request = next(line for line in lines if line["event"] == "request")
    assert "secret" in failure["trace"]
    assert failure["request_id"] == request["request_id"] == answer.headers["x-request-id"]
    assert (request["method"], request["path"], request["status"]) == ("GET", "/api/streams/orders", 500)


@settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(key=st.text(max_size=300), data=st.text(max_size=50), header=st.text(max_size=20))
def test_any_text_is_accepted_or_refused_politely(api: Api, orders: Stream, key: str, data: str, header: str) -> None:
    body = {"messages": [{"key": key, "data": data, "headers": {"h": header}}]}
    encoded = json.dumps(body, ensure_ascii=True).encode()
    answer = api.request("POST", f"{orders.path}/messages", content=encoded)
    assert answer.status_code in {200, 400}
    if answer.status_code == 200:
        read = api.data("GET", f"{orders.path}/messages", params={"from_seq": answer.json()["data"]["seqs"][0]})
        assert (read[0]["key"], read[0]["data"]) == (key, data)


def test_the_server_starts_while_postgres_is_down_and_recovers_on_its_own(fresh_url: str) -> None:
    gate = Gate(fresh_url)
    body = {"messages": [{"key": "k", "data": 1}]}
    with serving(gate.url, connect_timeout=1) as api:
        assert problem(api.get("/api/streams"), 503, "unavailable")["hint"]
        health = api.get("/health")
        assert (health.status_code, health.json()["ready"]) == (503, False)
        assert health.json()["reason"]
        assert api.get("/health/live").json() == {"alive": True}
        assert "postbus_ready 0.0" in api.get("/metrics").text

        gate.open()
        until(lambda: api.get("/health").status_code == 200, "it recovers")
        api.data("POST", "/api/streams", {"name": "orders"})
        api.data("POST", "/api/streams/orders/messages", body)

        gate.shut()
        lost = api.post("/api/streams/orders/messages", body)
        assert (lost.status_code, lost.json()["code"]) in {(503, "unavailable"), (503, "connection_lost")}
        assert api.get("/health").status_code == 503
        gate.open()
        until(lambda: api.post("/api/streams/orders/messages", body).status_code == 200, "it recovers again")
    gate.shut()


def test_an_unexpected_error_does_not_stop_the_retries(
    url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    connect = postbus.connect_async
    failures = [ValueError("odd")]

    async def connect_at_the_second_attempt(*arguments: Any, **more: Any) -> postbus.AsyncBus:
        if failures:
            raise failures.pop()
        return await connect(*arguments, **more)

    monkeypatch.setattr(postbus, "connect_async", connect_at_the_second_attempt)
    with serving(url) as api:
        until(lambda: api.get("/health").status_code == 200, "it is ready")
    assert "odd" in capfd.readouterr().err

"""Clients that take their time, never come to an end, or do not speak HTTP: they are told, and let go."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Iterator

import pytest

from tests.server.conftest import Stream
from tests.server.serving import Api, connected, serving
from tests.waiting import until

TIMEOUT = 0.6


@pytest.fixture(scope="module")
def impatient(url: str) -> Iterator[Api]:
    with serving(url, arrival_timeout=TIMEOUT) as api:
        yield api


def answer(line: socket.socket) -> tuple[int, str]:
    """The status and the code of an answer after which the connection is closed."""
    received = b""
    while part := line.recv(65536):
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"\r\nx-request-id: " in head
    return int(head.split()[1]), json.loads(body)["code"]


def test_an_unfinished_request_head_is_408(impatient: Api) -> None:
    with connected(impatient) as line:
        line.sendall(b"GET /health HTTP/1.1\r\nHost: local")
        assert answer(line) == (408, "too_slow")


def test_a_head_that_comes_byte_by_byte_is_408(impatient: Api) -> None:
    with connected(impatient) as line:
        for byte in b"GET /health HTTP/1.1\r\nHost: localhost\r\n":
            line.sendall(bytes([byte]))
            if select.select([line], [], [], TIMEOUT / 20)[0]:
                break
        assert answer(line) == (408, "too_slow")


def test_a_body_that_stops_coming_is_408_and_one_that_is_slow_is_not(impatient: Api) -> None:
    impatient.data("POST", "/api/streams", {"name": "slow-clients"})
    head = b"POST /api/streams/slow-clients/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    body = b'{"messages": [{"key": "k", "data": 1}]}'
    with connected(impatient) as line:
        line.sendall(head % len(body) + body[:10])
        assert answer(line) == (408, "too_slow")
    with connected(impatient) as line:
        line.sendall(head % len(body))
        for start in range(0, len(body), 8):
            time.sleep(TIMEOUT / 6)
            line.sendall(body[start : start + 8])
        assert line.recv(65536).startswith(b"HTTP/1.1 200")
    assert len(impatient.data("GET", "/api/streams/slow-clients/messages")) == 1


def test_an_idle_connection_is_closed(impatient: Api) -> None:
    with connected(impatient) as line:
        assert line.recv(1) == b""


def test_a_connection_that_was_used_may_rest(impatient: Api) -> None:
    request = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connected(impatient) as line:
        for _ in range(2):
            line.sendall(request)
            assert line.recv(65536).startswith(b"HTTP/1.1 200")
            time.sleep(2 * TIMEOUT)
        line.sendall(request[:20])
        assert answer(line) == (408, "too_slow")


@pytest.mark.parametrize("arrival_timeout", [TIMEOUT / 10, 10 * TIMEOUT])
def test_a_connection_that_rests_for_too_long_is_closed(url: str, arrival_timeout: float) -> None:
    request = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with serving(url, arrival_timeout=arrival_timeout, rest_timeout=TIMEOUT) as api, connected(api) as line:
        line.sendall(request)
        assert line.recv(65536).startswith(b"HTTP/1.1 200")
        rested_since = time.monotonic()
        assert line.recv(1) == b""
        assert TIMEOUT / 2 < time.monotonic() - rested_since < 5 * TIMEOUT


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"GET /health HTTP/1.1\r\nX: " + b"x" * 100_000, (431, "too_large")),
        (b"GET /" + b"x" * 100_000, (431, "too_large")),
        (b"GET /health HTTP/1.1\r\n" + b"X: 1\r\n" * 202, (431, "too_large")),
        (b"\x16\x03\x01\x00nonsense\r\n\r\n", (400, "invalid_http")),
        (b"GET /health HTTP/1.1\r\nContent-Length: -1\r\n\r\n", (400, "invalid_http")),
    ],
    ids=["endless header", "endless path", "many headers", "not HTTP", "wrong length"],
)
def test_oversized_and_non_http_requests_are_refused(impatient: Api, sent: bytes, expected: tuple[int, str]) -> None:
    with connected(impatient) as line:
        line.sendall(sent)
        assert answer(line) == expected
    assert impatient.get("/health").status_code == 200


def test_a_client_that_never_reads_its_answer_is_let_go(url: str, orders: Stream) -> None:
    orders.send(*(("k", "x" * 2_000_000) for _ in range(8)))
    with serving(url, arrival_timeout=TIMEOUT, rest_timeout=TIMEOUT) as api:
        host, port = api.url.removeprefix("http://").split(":")
        with socket.socket() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.settimeout(10)
            line.connect((host, int(port)))
            line.sendall(f"GET {orders.path}/messages HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            until(lambda: not api.server.server_state.connections, "the connection is given up")


def test_a_client_that_reads_slowly_gets_all_of_its_answer(url: str, orders: Stream) -> None:
    orders.send(*(("k", "x" * 2_000_000) for _ in range(8)))
    patience = 1.5
    with serving(url, arrival_timeout=patience, rest_timeout=patience) as api, connected(api) as line:
        line.sendall(f"GET {orders.path}/messages HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        started = time.monotonic()
        size = pauses = 0
        while size < 16_000_000 and (part := line.recv(65536)):
            size += len(part)
            if size > pauses * 160_000:
                pauses += 1
                time.sleep(0.05)
    assert size >= 16_000_000
    assert time.monotonic() - started > 3 * patience

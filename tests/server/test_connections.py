"""Answers come whole and in order, however they are asked for."""

from __future__ import annotations

import gc
import secrets
from typing import BinaryIO

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tests.server.serving import Api, connected


def test_pipelined_requests_are_answered_in_order(api: Api) -> None:
    paths = ("/health/live", "/nothing", "/health/live", "/api/openapi.json", "/health/live")
    with connected(api) as line, line.makefile("rb") as answers:
        line.sendall(b"".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for path in paths))
        for path in paths:
            status, body = whole_answer(answers)
            assert status == (404 if path == "/nothing" else 200)
            assert body.startswith(b'{"alive"') == (path == "/health/live")


def test_a_head_alone_is_answered_and_the_connection_is_good_for_more(api: Api) -> None:
    with connected(api) as line, line.makefile("rb") as answers:
        line.sendall(b"HEAD /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert head_of(answers) == (200, len(b'{"alive":true}'))
        line.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert whole_answer(answers) == (200, b'{"alive":true}')


def test_a_request_that_expects_100_continue_gets_it(api: Api) -> None:
    body = b'{"name": "asked-%s"}' % secrets.token_hex(4).encode()
    with connected(api) as line, line.makefile("rb") as answers:
        line.sendall(
            b"POST /api/streams HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
            % len(body)
        )
        assert head_of(answers)[0] == 100
        line.sendall(body)
        assert whole_answer(answers)[0] == 200


def test_a_request_that_was_answered_leaves_nothing_to_the_garbage_collector(api: Api) -> None:
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            assert api.get("/health/live").status_code == 200
        left = [each for each in gc.get_objects() if type(each) is RequestResponseCycle]
    finally:
        gc.enable()

    # Each connection keeps the last of its requests, also those of other servers in this process.
    assert len(left) < 50


def head_of(answers: BinaryIO) -> tuple[int, int]:
    """The status of the next answer, and how long it says that its body is."""
    status = int(answers.readline().split()[1])
    length = 0
    while (line := answers.readline()) != b"\r\n":
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return status, length


def whole_answer(answers: BinaryIO) -> tuple[int, bytes]:
    status, length = head_of(answers)
    return status, answers.read(length)

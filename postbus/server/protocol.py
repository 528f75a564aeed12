"""uvicorn's HTTP protocol with limits on header size and arrival time, and responses sent in a single write."""

from __future__ import annotations

import asyncio
import fcntl
import http
import re
import secrets
import struct
import termios
from functools import cache
from typing import Any, Final

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from postbus.server import logs, problems
from postbus.server.problems import Problem
from postbus.server.requests import Event

_MOST_HEAD_BYTES: Final = 64 * 1024
_MOST_HEADERS: Final = 200
_UPGRADE: Final = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)


class _Answering:
    """Sends a response in a single write. uvicorn writes head and body separately, which wakes the client up twice."""

    __slots__ = ("_cycle", "_start")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._start: Event | None = None

    async def send(self, event: Event) -> None:
        """Take the start of the response, then its whole body."""
        start, cycle = self._start, self._cycle
        if start is None:
            self._start = event
            return
        # Break the reference cycle: otherwise only the garbage collector would free each request, and it pauses all requests.
        del cycle.send
        if cycle.flow.write_paused and not cycle.disconnected:
            await cycle.flow.drain()
        if cycle.disconnected:
            return
        cycle.response_started = True
        cycle.waiting_for_100_continue = False
        head = self._head(start["status"], [*cycle.default_headers, *start["headers"]])
        cycle.transport.write(head if cycle.scope["method"] == "HEAD" else head + event["body"])
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()

    def _head(self, status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
        if (b"connection", b"close") in headers:
            self._cycle.keep_alive = False
        elif not self._cycle.keep_alive:
            headers.append((b"connection", b"close"))
        lines = [_status_line(status), *(b"%b: %b" % header for header in headers), b"\r\n"]
        head = b"\r\n".join(lines)
        if head.count(b"\n") > len(lines):
            raise RuntimeError("a header of the response has more than one line")
        return head


def _without_upgrade(data: bytes) -> bytes:
    """Remove an offer to upgrade to HTTP/2: the parser would stop at it and lose the body."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head) + end + rest


@cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}".encode()


class Protocol(HttpToolsProtocol):
    """One connection.

    Args:
        arrival_timeout: How many seconds the head of a request may take, and each part of its body.
        rest_timeout: How many seconds may pass between a response and the next request.
        access_log: Whether to log input that is refused before it is a request.
        arguments: Those of uvicorn's protocol.
    """

    def __init__(self, *, arrival_timeout: float, rest_timeout: float, access_log: bool, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._arrival_timeout = arrival_timeout
        self._rest_timeout = rest_timeout
        self._access_log = access_log
        self._timer: asyncio.TimerHandle | None = None
        # The deadline of the client; None while nothing is awaited. One timer checks it, instead of a timer for each part.
        self._deadline: float | None = None
        self._is_in_head = True
        self._head_bytes = 0
        self._refusal: Problem | None = None
        # How many bytes of a response were unsent at the last deadline.
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_more()

    def connection_lost(self, exc: Exception | None) -> None:
        self._await_nothing()
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        if self._is_in_head and b"h2c" in data:
            data = _without_upgrade(data)
        super().data_received(data)
        # The body may have arrived in the same part: then the head is complete.
        if self._is_in_head and self._head_bytes > _MOST_HEAD_BYTES:
            self._refuse(Problem(431, "too_large", f"the head of a request may have at most {_MOST_HEAD_BYTES} bytes"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._is_in_head:
            self._is_in_head = True
            self._head_bytes = 0
        self._await_more()

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= _MOST_HEADERS:
            self._refusal = Problem(431, "too_large", f"a request may have at most {_MOST_HEADERS} headers")
            raise httptools.HttpParserError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._await_more()
        super().on_headers_complete()
        self.cycle.send = _Answering(self.cycle).send  # type: ignore[method-assign, assignment]

    def on_body(self, body: bytes) -> None:
        self._await_more()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._await_nothing()
        super().on_message_complete()
        if self.cycle.response_complete:
            self._await_request()

    def on_response_complete(self) -> None:
        """Continue with the next request. Without one, uvicorn would create a timer."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if self._deadline is None:
            self._await_request()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid or oversized HTTP with the usual error body."""
        self._refuse(self._refusal or Problem(400, "invalid_http", "this is not a valid HTTP request"))

    def _await_request(self) -> None:
        self._is_in_head = True
        self._head_bytes = 0
        self._await(self._rest_timeout)

    def _await_more(self) -> None:
        self._await(self._arrival_timeout)

    def _await(self, seconds: float) -> None:
        self._deadline = self.loop.time() + seconds
        if self._timer is None:
            self._look_after(seconds)

    def _await_nothing(self) -> None:
        self._deadline = None

    def _look_after(self, seconds: float) -> None:
        # Meanwhile the deadline may have moved forward.
        seconds = min(seconds, self._arrival_timeout, self._rest_timeout)
        self._timer = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        left = self._deadline - self.loop.time()
        if left > 0:
            self._look_after(left)
        else:
            self._give_up()

    def _give_up(self) -> None:
        if self.flow.read_paused:
            self._await_more()  # We have paused reading, so the client is not slow.
        elif self._is_in_head and not self._head_bytes:
            self._rest_no_more()
        else:
            what = "the request did not arrive within" if self._is_in_head else "no more of the body arrived for"
            self._refuse(Problem(408, "too_slow", f"{what} {self._arrival_timeout:g} s"))

    def _rest_no_more(self) -> None:
        """Close an idle connection. A client that is still reading its response gets more time."""
        unsent = self._count_unsent()
        if not unsent:
            self.transport.close()
        elif self._unsent and unsent >= self._unsent:
            self.transport.abort()
        else:
            self._unsent = unsent
            self._await(self._arrival_timeout)

    def _count_unsent(self) -> int:
        """How many bytes of responses the client has not read: in our buffer, and in the system's."""
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            line = self.transport.get_extra_info("socket")
            unsent += struct.unpack("i", fcntl.ioctl(line.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
        return unsent

    def _refuse(self, problem: Problem) -> None:
        self._await_nothing()
        if self.transport.is_closing():
            return
        # An error cannot be sent in the middle of a response.
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            request_id = secrets.token_hex(8)
            body = msgspec.json.encode(problems.answer(problem))
            lines = (
                "content-type: application/json",
                f"content-length: {len(body)}",
                f"x-request-id: {request_id}",
                "connection: close",
            )
            head = "\r\n".join(("", *lines, "", "")).encode()
            self.transport.write(_status_line(problem.status) + head + body)
            if self._access_log:
                client = (self.client or ("",))[0]
                logs.note("refused", request_id=request_id, status=problem.status, code=problem.code, client=client)
        self.transport.close()

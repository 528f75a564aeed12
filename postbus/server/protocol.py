"""uvicorn's HTTP, with bounds on how a request arrives (no end of headers, no client that never gets there), and answers that
are written at once.
"""

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
    """Sends the answer of one request, where uvicorn would write its head and its body one after the other: each write is a
    call of the system, and wakes the client up.
    """

    __slots__ = ("_cycle", "_start")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._start: Event | None = None

    async def send(self, event: Event) -> None:
        """Take the start of the answer, then its whole body."""
        start, cycle = self._start, self._cycle
        if start is None:
            self._start = event
            return
        # The two hold each other: left so, each request would be garbage that only the collector finds, in whose pauses nobody
        # is answered.
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
            raise RuntimeError("a header of the answer has more than one line")
        return head


def _without_upgrade(data: bytes) -> bytes:
    """An offer to speak HTTP/2 may be ignored; the parser would stop at it, and forget the body."""
    head, end, rest = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head) + end + rest


@cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}".encode()


class Protocol(HttpToolsProtocol):
    """One connection.

    Args:
        arrival_timeout: How many seconds the head of a request may take, and each part of its body.
        rest_timeout: How many seconds may pass between an answer and the next request.
        access_log: Whether to log what is refused before it is a request.
        arguments: uvicorn's.
    """

    def __init__(self, *, arrival_timeout: float, rest_timeout: float, access_log: bool, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._arrival_timeout = arrival_timeout
        self._rest_timeout = rest_timeout
        self._access_log = access_log
        self._timer: asyncio.TimerHandle | None = None
        # When patience ends; None while nothing is awaited. The timer looks at it, and is not made anew for each part.
        self._deadline: float | None = None
        self._is_in_head = True
        self._head_bytes = 0
        self._refusal: Problem | None = None
        # How much of an answer was left to be sent when patience ended last.
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
        # The body may have come with it: then the head is over.
        if self._is_in_head and self._head_bytes > _MOST_HEAD_BYTES:
            self._refuse(Problem(431, "too_large", f"the head of a request has {_MOST_HEAD_BYTES} bytes at most"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._is_in_head:
            self._is_in_head = True
            self._head_bytes = 0
        self._await_more()

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) >= _MOST_HEADERS:
            self._refusal = Problem(431, "too_large", f"a request has {_MOST_HEADERS} headers at most")
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
        """Go on with the next request. If none is there, uvicorn would make a timer for it."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if self._deadline is None:
            self._await_request()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, or too much of it, as everything else is answered."""
        self._refuse(self._refusal or Problem(400, "invalid_http", "this is not a request of HTTP"))

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
        # Before that time something else may be awaited, for not so long.
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
            self._await_more()  # It is we who do not read on.
        elif self._is_in_head and not self._head_bytes:
            self._rest_no_more()
        else:
            what = "the request did not arrive within" if self._is_in_head else "nothing more of the body came for"
            self._refuse(Problem(408, "too_slow", f"{what} {self._arrival_timeout:g} s"))

    def _rest_no_more(self) -> None:
        """Nothing was asked. A client that has not read its answer yet has time as long as it reads on."""
        unsent = self._count_unsent()
        if not unsent:
            self.transport.close()
        elif self._unsent and unsent >= self._unsent:
            self.transport.abort()
        else:
            self._unsent = unsent
            self._await(self._arrival_timeout)

    def _count_unsent(self) -> int:
        """How many bytes of answers the client has not taken: ours, and those that the system keeps."""
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            line = self.transport.get_extra_info("socket")
            unsent += struct.unpack("i", fcntl.ioctl(line.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
        return unsent

    def _refuse(self, problem: Problem) -> None:
        self._await_nothing()
        if self.transport.is_closing():
            return
        # In the middle of an answer there is no place for another.
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

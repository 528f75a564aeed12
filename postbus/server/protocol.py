"""uvicorn's HTTP, with bounds on how a request arrives (no end of headers, no client that never gets there), and answers that
are written at once.
"""

from __future__ import annotations

import asyncio
import http
from typing import Any, Final

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from postbus.server import problems
from postbus.server.problems import Problem

_MOST_HEAD_BYTES: Final = 64 * 1024
_MOST_HEADERS: Final = 200
_CONTINUE: Final = b"HTTP/1.1 100 "


class _Joining:
    """A transport that writes the head of an answer together with what follows: each write wakes the client up."""

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None

    def write(self, data: bytes) -> None:
        if self._head:
            self._transport.writelines((self._head, data))
            self._head = b""
        elif self._head is None and not data.startswith(_CONTINUE):
            self._head = data
        else:
            self._transport.write(data)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        if self._head:
            self._transport.write(self._head)
        self._transport.close()


class Protocol(HttpToolsProtocol):
    """One connection.

    Args:
        arrival_timeout: How many seconds the head of a request may take, and each part of its body.
        arguments: uvicorn's.
    """

    def __init__(self, *, arrival_timeout: float, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._arrival_timeout = arrival_timeout
        self._timer: asyncio.TimerHandle | None = None
        # When patience ends; None while nothing is awaited. The timer looks at it, and is not made anew for each part.
        self._deadline: float | None = None
        self._is_in_head = True
        self._head_bytes = 0
        self._refusal: Problem | None = None

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
        if self.scope["method"] != "HEAD":
            self.cycle.transport = _Joining(self.transport)  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        self._await_more()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._await_nothing()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, or too much of it, as everything else is answered."""
        self._refuse(self._refusal or Problem(400, "invalid_http", "this is not a request of HTTP"))

    def _await_more(self) -> None:
        self._deadline = self.loop.time() + self._arrival_timeout
        if self._timer is None:
            self._timer = self.loop.call_later(self._arrival_timeout, self._look)

    def _await_nothing(self) -> None:
        self._deadline = None

    def _look(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        left = self._deadline - self.loop.time()
        if left > 0:
            self._timer = self.loop.call_later(left, self._look)
        else:
            self._give_up()

    def _give_up(self) -> None:
        if self.flow.read_paused:
            self._await_more()  # It is we who do not read on.
        elif self._is_in_head and not self._head_bytes:
            self.transport.close()  # Nothing was asked.
        else:
            what = "the request did not arrive within" if self._is_in_head else "nothing more of the body came for"
            self._refuse(Problem(408, "too_slow", f"{what} {self._arrival_timeout:g} s"))

    def _refuse(self, problem: Problem) -> None:
        self._await_nothing()
        if self.transport.is_closing():
            return
        # In the middle of an answer there is no place for another.
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = msgspec.json.encode(problems.answer(problem))
            head = (
                f"HTTP/1.1 {problem.status} {http.HTTPStatus(problem.status).phrase}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()

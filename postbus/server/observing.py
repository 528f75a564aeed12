"""What surrounds every request: its id, its line in the log, its count, and the check of whom a browser sends."""

from __future__ import annotations

import itertools
import re
import secrets
import time
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postbus import tracing
from postbus.server import logs, problems
from postbus.server.problems import Problem
from postbus.server.service import Service
from postbus.server.settings import is_loopback

_is_request_id: Final = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}").fullmatch
_UNKNOWN_ROUTE: Final = "other"
# Ids of requests that bring none: no two alike, and no random number for each.
_process_id: Final = secrets.token_hex(4)
_number: Final = itertools.count()


def _route_of(scope: Scope) -> str:
    return str(getattr(scope.get("route"), "path", _UNKNOWN_ROUTE))


def request_id_of(scope: Scope) -> str:
    return str(scope.get("postbus.request_id", ""))


@lru_cache(maxsize=100)
def _is_this_machine(host: bytes) -> bool:
    try:
        return is_loopback(urlsplit("//" + host.decode("latin-1")).hostname or "localhost")
    except ValueError:
        return False


class Observing:
    """An ASGI application around another."""

    def __init__(self, application: ASGIApp, service: Service) -> None:
        self._application = application
        self._service = service
        settings = service.settings
        self._is_for_this_machine = settings.is_open and not settings.insecure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
        elif tracing.is_on():
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            with tracing.serving(scope["method"], headers) as span:
                status = await self._serve(scope, receive, send)
                tracing.answered(span, method=scope["method"], route=_route_of(scope), status=status)
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> int:
        started = time.perf_counter()
        headers = dict(scope["headers"])
        request_id = _request_id(headers)
        scope["postbus.request_id"] = request_id
        status, size = 499, 0  # What nobody waited for.

        async def observed(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            problem = self._refusal(headers)
            if problem is None:
                await self._application(scope, receive, observed)
            else:
                await _answer(observed, problem)
        finally:
            self._note(scope, request_id, status, started, size)
        return status

    def _refusal(self, headers: dict[bytes, bytes]) -> Problem | None:
        """An open server on loopback serves programs of this machine, not web pages that a browser here has open."""
        if not self._is_for_this_machine:
            return None
        host = headers.get(b"host", b"")
        if not _is_this_machine(host):
            return Problem(403, "forbidden", "this server is for this machine only", hint="ask it as localhost")
        origin = headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != host:
            return Problem(403, "forbidden", "web pages of other sites may not use this server")
        return None

    def _note(self, scope: Scope, request_id: str, status: int, started: float, size: int) -> None:
        method = scope["method"] if "route" in scope else _UNKNOWN_ROUTE
        self._service.metrics.count_request(method, _route_of(scope), status, time.perf_counter() - started)
        if self._service.settings.access_log:
            logs.request(
                request_id=request_id,
                method=scope["method"],
                path=scope["path"],
                status=status,
                started=started,
                client=(scope.get("client") or ("",))[0],
                response_bytes=size,
            )


def _request_id(headers: dict[bytes, bytes]) -> str:
    """The client's own, if it is a decent one."""
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _is_request_id(given) else f"{_process_id}{next(_number):08x}"


async def _answer(send: Send, problem: Problem) -> None:
    body = msgspec.json.encode(problems.answer(problem))
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

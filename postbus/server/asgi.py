"""The ASGI application: gives each request an id, a line in the log and a count, and checks requests of browsers."""

from __future__ import annotations

import itertools
import re
import secrets
import time
from collections.abc import Mapping
from typing import Final

from postbus import tracing
from postbus.server import browsers, logs, receiving
from postbus.server.application import Application, refusal
from postbus.server.requests import Receive, Request, Response, Scope, Send
from postbus.server.state import AppState

_is_request_id: Final = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}").fullmatch
_UNKNOWN_ROUTE: Final = "other"
_NOBODY_WAITED: Final = Response(b"", 499)
_HEALTH: Final = ("/health", "/health/live")


class AsgiApp:
    """The ASGI application that uvicorn calls."""

    def __init__(self, state: AppState) -> None:
        self._application = Application(state)
        self._state = state
        self._gate = browsers.Gate(state.settings)
        # Ids for requests without one: unique, without a random number for each.
        self._ids = (f"{number:016x}" for number in itertools.count(secrets.randbits(64) & ~0xFFFFFFFF))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        headers = dict(scope["headers"])
        request_id = _given_id(headers) or next(self._ids)
        path, raw_path = scope["path"], scope["raw_path"].decode("latin-1")
        request = Request(scope["method"], path, raw_path, scope["query_string"], headers, receive, request_id)
        if tracing.is_on():
            named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
            with tracing.serving(request.method, named) as span:
                status = await self._serve(request, scope, send)
                route = request.route or _UNKNOWN_ROUTE
                tracing.answered(span, method=request.method, route=route, status=status)
        else:
            await self._serve(request, scope, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start and stop the shared state when uvicorn says so."""
        await receive()
        await self._state.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._state.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, request: Request, scope: Scope, send: Send) -> int:
        started = time.perf_counter()
        response = _NOBODY_WAITED
        try:
            sender = browsers.sender_of(request.headers)
            # Webhooks come by the names of tunnels and proxies, and are verified one by one.
            is_webhook = request.path.startswith(receiving.PREFIX)
            problem = None if is_webhook else self._gate.refusal(request.method, request.headers, sender)
            if problem is None:
                response = await self._application.answer(request)
            else:
                response = refusal(problem)
            if sender != "program":
                response.headers = {**response.headers, **browsers.SHIELDS}
            await response.send(request.id, send)
        finally:
            self._note(request, response, started, (scope.get("client") or ("",))[0])
        return response.status

    def _note(self, request: Request, response: Response, started: float, client: str) -> None:
        method = request.method if request.route else _UNKNOWN_ROUTE
        seconds = time.perf_counter() - started
        self._state.metrics.count_request(method, request.route or _UNKNOWN_ROUTE, response.status, seconds)
        # A program asks for its health every few seconds, and the command line before each command.
        is_routine = response.status == 200 and request.path in _HEALTH
        if self._state.settings.access_log and not is_routine:
            logs.request(
                request_id=request.id,
                method=request.method,
                path=request.path,
                status=response.status,
                started=started,
                client=client,
                response_bytes=len(response.body),
            )


def _given_id(headers: Mapping[bytes, bytes]) -> str | None:
    """The client's own id, if it is valid."""
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _is_request_id(given) else None

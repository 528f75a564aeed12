"""The application: routes requests to endpoints, and turns errors into responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from postbus.model.errors import Error
from postbus.server import logs, openapi, problems, receiving
from postbus.server.console.console import Console
from postbus.server.dispatch import Dispatcher
from postbus.server.endpoint import Endpoint
from postbus.server.endpoints import ALL
from postbus.server.problems import Problem, not_in_scope
from postbus.server.requests import Disconnected, Request, Response
from postbus.server.router import Router
from postbus.server.sqs.wire import SqsWire
from postbus.server.start_page import start_page
from postbus.server.state import AppState

_encode = msgspec.json.Encoder().encode
Answering = Callable[[Request], Awaitable[Response]]


class Application:
    """Answers requests."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._console = None if state.settings.console == "off" else Console(state)
        self._sqs = SqsWire(state) if state.settings.sqs else None
        self._router: Router[Answering] = Router()
        for endpoint in ALL:
            self._router.add(endpoint.route.method, endpoint.route.path, _answering(endpoint, state))
        others: dict[str, Answering] = {
            "/": self._start,
            "/health": self._health,
            "/health/live": self._live,
            "/metrics": self._metrics,
            "/api/openapi.json": self._description,
        }
        for path, answer in others.items():
            for method in ("GET", "HEAD"):
                self._router.add(method, path, answer)
        for method in ("GET", "POST", "OPTIONS"):
            self._router.add(method, receiving.PATH, state.receiving.answer)

    async def answer(self, request: Request) -> Response:
        """The response to a request, whatever happens."""
        if self._console is not None and request.raw_path.startswith("/console/"):
            return await self._console.answer(request)
        try:
            if self._sqs is not None and self._sqs.is_for(request):
                return await self._sqs.answer(request)
            found = self._router.find(request.method, request.raw_path)
            if found is None:
                return self._nothing_there(request)
            request.route, request.parameters = found.path, found.parameters
            return await found.endpoint(request)
        except Problem as problem:
            return _problem(request, problem)
        except Error as error:
            return _problem(request, problems.of_error(error))
        except Disconnected:
            return Response(b"", 400)
        except Exception as error:
            logs.failure(request.id, error)
            return refusal(
                Problem(500, "internal", "an internal error occurred", hint="the server's log has the details")
            )

    def _nothing_there(self, request: Request) -> Response:
        path = request.path[:200]
        allowed = ", ".join(self._router.methods(request.raw_path))
        if not allowed:
            return refusal(Problem(404, "not_found", f"there is nothing at {path}", hint="see /api/openapi.json"))
        summary = f"{request.method} is not possible at {path}"
        headers = {"allow": allowed}
        return refusal(Problem(405, "method_not_allowed", summary, hint=f"use {allowed}", headers=headers))

    async def _health(self, _: Request) -> Response:
        """Whether requests can be served, or why not. Without a token, the reason contains no addresses."""
        state = self._state
        why = await state.connection.why_not_ready()
        if state.stopping:
            reason = "the server is stopping"
        elif why is not None:
            reason = why.message if state.settings.is_open else type(why).__name__
        else:
            return Response(_encode({"alive": True, "ready": True}))
        return Response(_encode({"alive": True, "ready": False, "reason": reason}), 503)

    async def _live(self, _: Request) -> Response:
        return Response(b'{"alive":true}')

    async def _metrics(self, request: Request) -> Response:
        token = await self._state.guard.identify(request.header(b"authorization"))
        if not token.may("manage", None):
            raise not_in_scope("manage", "on all streams")
        page, content_type = await self._state.metrics.exposition(request.header(b"accept") or "")
        return Response(page, content_type=content_type)

    async def _start(self, request: Request) -> Response:
        return start_page(request.header(b"accept") or "", has_console=self._console is not None)

    async def _description(self, _: Request) -> Response:
        return Response(openapi.document(is_open=self._state.settings.is_open))


def _answering(endpoint: Endpoint, state: AppState) -> Answering:
    dispatcher = Dispatcher(endpoint, state)

    async def answer(request: Request) -> Response:
        try:
            body, headers = await dispatcher.answer(request)
        except Error as error:
            return _problem(request, problems.of_error(error, invalid_status=endpoint.invalid_status))
        return Response(body, 200, headers)

    return answer


def _problem(request: Request, problem: Problem) -> Response:
    if problem.status == 500:
        logs.failure(request.id, problem)
    return refusal(problem)


def refusal(problem: Problem) -> Response:
    """The response for a problem."""
    return Response(_encode(problems.answer(problem)), problem.status, problem.headers)

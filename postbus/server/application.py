"""The application: endpoints behind paths, and errors as answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from postbus.model.errors import Error
from postbus.server import logs, openapi, problems
from postbus.server.calls import Caller, Endpoint
from postbus.server.endpoints import ALL
from postbus.server.observing import Observing, request_id_of
from postbus.server.problems import Problem
from postbus.server.service import Service
from postbus.server.settings import Settings

_encode = msgspec.json.Encoder().encode
Answering = Callable[[Request], Awaitable[Response]]


def create(settings: Settings) -> tuple[Observing, Service]:
    """The application to be served, and what its requests share."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    routes = [_route(endpoint, service) for endpoint in ALL]
    routes += [
        Route("/health", _guarded(lambda request: _health(service)), methods=["GET"]),
        Route("/health/live", _guarded(lambda request: _live()), methods=["GET"]),
        Route("/metrics", _guarded(lambda request: _metrics(service, request)), methods=["GET"]),
        Route("/api/openapi.json", _guarded(lambda request: _description(settings)), methods=["GET"]),
    ]
    application = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _no_such_route, Exception: _failure}
    )
    application.router.redirect_slashes = False
    return Observing(application, service), service


def _route(endpoint: Endpoint, service: Service) -> Route:
    caller = Caller(endpoint, service)

    async def answer(request: Request) -> Response:
        try:
            body, headers = await caller.answer(request)
            return Response(body, headers=headers, media_type="application/json")
        except Error as error:
            return _problem(request, problems.of_error(error, invalid_status=endpoint.invalid_status))

    # A path of its own for each method: the first whose path and method match answers.
    route = Route(endpoint.path, _guarded(answer), methods=[endpoint.method], name=endpoint.path)
    route.methods = {endpoint.method}  # Without HEAD, which nobody described.
    return route


def _guarded(answer: Answering) -> Answering:
    async def guarded(request: Request) -> Response:
        try:
            return await answer(request)
        except Problem as problem:
            return _problem(request, problem)
        except Error as error:
            return _problem(request, problems.of_error(error))
        except ClientDisconnect:
            return Response(status_code=400)

    return guarded


async def _health(service: Service) -> Response:
    """Whether requests can be served, and why not. Strangers are told no addresses."""
    why = await service.connection.why_not_ready()
    if service.stopping:
        reason = "the server is stopping"
    elif why is not None:
        reason = why.message if service.settings.is_open else type(why).__name__
    else:
        return _json(_encode({"alive": True, "ready": True}))
    return _json(_encode({"alive": True, "ready": False, "reason": reason}), status=503)


async def _live() -> Response:
    return _json(b'{"alive":true}')


async def _metrics(service: Service, request: Request) -> Response:
    token = await service.guard.identify(request.headers.get("authorization"))
    if not token.may("manage", None):
        raise Problem(403, "forbidden", 'this token does not allow "manage" on all streams')
    page, content_type = await service.metrics.exposition(request.headers.get("accept", ""))
    return Response(page, headers={"content-type": content_type})


async def _description(settings: Settings) -> Response:
    return _json(openapi.document(is_open=settings.is_open))


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status_code=status, media_type="application/json")


def _problem(request: Request, problem: Problem) -> Response:
    if problem.status == 500:
        logs.failure(request_id_of(request.scope), problem)
    body = _encode(problems.answer(problem))
    return Response(body, problem.status, headers=dict(problem.headers), media_type="application/json")


async def _no_such_route(request: Request, error: Exception) -> Response:
    path = request.url.path[:200]
    allowed = sorted(
        method
        for route in request.app.routes
        if isinstance(route, Route) and route.path_regex.match(request.scope["path"])
        for method in route.methods or ()
    )
    if not allowed:
        return _problem(request, Problem(404, "not_found", f"there is nothing at {path}", hint="see /api/openapi.json"))
    methods = ", ".join(allowed)
    summary = f"{request.method} is not possible at {path}"
    headers = {"allow": methods}
    return _problem(request, Problem(405, "method_not_allowed", summary, hint=f"use {methods}", headers=headers))


async def _failure(request: Request, error: Exception) -> Response:
    logs.failure(request_id_of(request.scope), error)
    problem = Problem(500, "internal", "something went wrong in the server", hint="its log says what")
    return Response(_encode(problems.answer(problem)), 500, media_type="application/json")

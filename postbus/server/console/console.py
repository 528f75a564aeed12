"""Answers requests for the console: finds the page, checks the session, and shows errors as pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qsl

from postbus.html.markup import Html, join, tag
from postbus.model.errors import Error
from postbus.server import browsers, logs, problems
from postbus.server.auth import EVERYBODY
from postbus.server.bodies import read_body
from postbus.server.console import pages, session, static_files
from postbus.server.console.act import Act
from postbus.server.console.figures import FigureCache
from postbus.server.console.layout import document
from postbus.server.console.parts import card, link
from postbus.server.console.visit import Download, Page, Redirect, Shown, Visit
from postbus.server.problems import Problem
from postbus.server.requests import Disconnected, Request, Response
from postbus.server.router import Router
from postbus.server.state import AppState

_MOST_FIELDS: Final = 2000
_MOST_ACTS: Final = 8
_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}
Handler = Callable[[Visit], Awaitable[Shown | Act]]


class Console:
    """Answers requests for pages below /console/."""

    def __init__(self, state: AppState) -> None:
        self._state = state
        self._figures = FigureCache(state.connection)
        self._router: Router[Handler] = Router()
        for method, path, handler in pages.ALL:
            self._router.add(method, path, handler)

    async def answer(self, request: Request) -> Response:
        """The response to a request, whatever happens."""
        if request.raw_path.startswith("/console/static/"):
            return static_files.serve(request.raw_path.rpartition("/")[2]) or Response(b"", 404)
        cookies = session.cookies_of(request.header(b"cookie"))
        visit = Visit(self._state, self._figures, request, EVERYBODY, {}, {}, cookies)
        try:
            with self._state.deadlines.kept(0.0):
                return self._response(visit, await self._shown(visit))
        except Problem as problem:
            return self._refusal(visit, problem)
        except Error as error:
            return self._refusal(visit, problems.of_error(error))
        except Disconnected:
            return Response(b"", 400)
        except Exception as error:
            logs.failure(request.id, error)
            hint = f"the server's log has the details, under the id {request.id}"
            return self._refusal(visit, Problem(500, "internal", "an internal error occurred", hint=hint))

    async def _shown(self, visit: Visit) -> Shown:
        request = visit.request
        method = "GET" if request.method == "HEAD" else request.method
        found = self._router.find(method, request.raw_path)
        if found is None:
            if self._router.methods(request.raw_path):
                raise Problem(
                    405, "method_not_allowed", "there is no page here, only a form", hint="go on from the overview"
                )
            raise Problem(404, "not_found", "there is no such page", hint="go on from the overview")
        request.route, request.parameters = found.path, found.parameters
        visit.query = dict(parse_qsl(request.query.decode("latin-1"), max_num_fields=_MOST_FIELDS))
        if method == "POST":
            _check_origin(request)
            if request.raw_path not in pages.CHANGING_NOTHING:
                visit.demand_change()
            visit.form = await self._form(request)
        if found.path not in pages.WITHOUT_SESSION:
            away = await self._identify(visit)
            if away is not None:
                return away
        if method == "POST" and "as_code" in visit.form:
            return await self._code(visit, found.endpoint)
        shown = await found.endpoint(visit)
        return await self._perform(visit, shown) if isinstance(shown, Act) else shown

    async def _form(self, request: Request) -> dict[str, str]:
        body = await read_body(request, self._state.settings.max_body_bytes)
        try:
            pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        except ValueError:
            raise Problem(400, "invalid", "the form cannot be read", hint="send it as a browser does") from None
        fields: dict[str, str] = {}
        for name, value in pairs:
            fields[name] = f"{fields[name]},{value}" if name in fields else value
        return fields

    async def _identify(self, visit: Visit) -> Redirect | None:
        """Find the token of the session; without a valid one, the page to log in on."""
        text = visit.cookies.get(session.SESSION, "")
        try:
            visit.token = await self._state.guard.identify(f"Bearer {text}" if text else None)
        except Problem as problem:
            if problem.status != 401:
                raise
            return Redirect(visit.to("login"), "the session has ended; log in again" if text else "")
        return None

    async def _code(self, visit: Visit, handler: Handler) -> Shown:
        """What a form would do, as code: for the act that it names, or for each that its buttons name."""
        form, settings = visit.form, visit.state.settings
        acts = []
        for name in [form["act"]] if "act" in form else form["as_code"].split(",")[:_MOST_ACTS]:
            visit.form = {**form, "act": name}
            act = await handler(visit)
            if not isinstance(act, Act):
                return act
            act.demand(visit)
            acts.append((name, act))
        url = f"{settings.scheme}://{visit.request.header(b'host') or 'localhost'}"
        blocks = [
            join(tag("h2", name) if len(acts) > 1 else None, act.as_code(url, has_token=not settings.is_open))
            for name, act in acts
        ]
        words = "Nothing was changed. The same from a shell, a program or psql:"
        back = tag("p", link("Back", acts[0][1].to, class_="button"))
        return Page("As code", join(card(tag("p", words), *blocks[:1]), *map(card, blocks[1:]), back))

    async def _perform(self, visit: Visit, act: Act) -> Shown:
        """Do what a form asks for."""
        act.demand(visit)
        result = await visit.run(act.call)
        if act.then is not None:
            await act.then()
        self._figures.forget()
        http = act.call.http
        route = "" if http is None else f"{http.route.method} {http.route.of(*http.names)}"
        logs.note("console", token=visit.token.name, did=route, request_id=visit.request.id)
        page = None if act.page is None else act.page(result)
        return page or Redirect(act.to, act.said(result))

    def _response(self, visit: Visit, shown: Shown) -> Response:
        headers = {**_HEADERS, **visit.headers}
        if isinstance(shown, Redirect):
            if shown.said and "set-cookie" not in headers:
                headers["set-cookie"] = session.said(shown.said)
            return Response(b"", 303, {**headers, "location": shown.to})
        if isinstance(shown, Download):
            headers["content-disposition"] = f'attachment; filename="{shown.name}"'
            return Response(shown.body, headers=headers, content_type=shown.content_type)
        is_alone = visit.request.route in pages.WITHOUT_SESSION
        page = document(visit, shown, is_alone=is_alone)
        return Response(page.encode(errors="replace"), shown.status, headers, "text/html; charset=utf-8")

    def _refusal(self, visit: Visit, problem: Problem) -> Response:
        if problem.status == 500:
            logs.failure(visit.request.id, problem)
        details = [
            tag("li", f"{name}: {each}") for name, texts in (problem.validation_errors or {}).items() for each in texts
        ]
        body = card(
            tag("p", problem.summary, class_="problem"),
            tag("ul", *details) if details else None,
            tag("p", problem.hint, class_="soft") if problem.hint else None,
            Html('<p><a class="button" href="' + visit.to() + '">Overview</a></p>'),
        )
        return self._response(visit, Page(f"{problem.status}", body, status=problem.status))


def _check_origin(request: Request) -> None:
    """Refuse a form that a page of another site sends with the session of this one.

    Raises:
        Problem: 403.
    """
    sender = browsers.sender_of(request.headers)
    if sender not in ("own page", "program"):
        hint = "open the console by its own address, in a browser of 2020 or later"
        raise Problem(403, "forbidden", "pages of other web sites may not use this console", hint=hint)

"""Logging in and out, and choosing a theme."""

from __future__ import annotations

from urllib.parse import urlsplit

from postbus.html.markup import Html, tag
from postbus.server.console import session
from postbus.server.console.parts import card
from postbus.server.console.visit import Page, Redirect, Visit
from postbus.server.problems import Problem


async def show(visit: Visit) -> Page | Redirect:
    """The form for a token."""
    if visit.state.settings.is_open:
        return Redirect(visit.to())
    return _form("")


async def log_in(visit: Visit) -> Page | Redirect:
    """Begin a session, if the token is valid."""
    text = visit.form.get("token", "").strip()
    try:
        await visit.state.guard.identify(f"Bearer {text}")
    except Problem as problem:
        if problem.status != 401:
            raise
        return _form("this token is not valid")
    is_secure = visit.state.settings.scheme == "https"
    visit.headers["set-cookie"] = session.cookie(session.SESSION, text, secure=is_secure)
    return Redirect(visit.to())


async def log_out(visit: Visit) -> Redirect:
    """End the session: the browser forgets the token. The token itself stays valid."""
    visit.headers["set-cookie"] = session.cookie(session.SESSION, "", seconds=0)
    return Redirect(visit.to("login"))


async def choose_theme(visit: Visit) -> Redirect:
    """Show all pages light, dark, or as the browser is."""
    visit.headers["set-cookie"] = session.theme(visit.form.get("theme", "auto"))
    # Back to where the form was. Only its path: the header is the browser's own, and the host stays this one.
    before = urlsplit(visit.request.header(b"referer") or "")
    is_page = before.path.startswith("/") and not before.path.startswith("//")
    return Redirect(before.path + (f"?{before.query}" if before.query else "") if is_page else visit.to())


def _form(problem: str) -> Page:
    form = tag(
        "form",
        tag("label", "Token", for_="token"),
        Html('<input type="password" name="token" id="token" required autofocus autocomplete="current-password">'),
        tag("p", problem, class_="problem", role="alert") if problem else None,
        tag("button", "Log in", class_="primary"),
        tag("p", "Create one with: ", tag("code", "postbus token create NAME"), class_="soft"),
        method="post",
    )
    return Page("Log in to Postbus", card(form, class_="card login"), status=403 if problem else 200)

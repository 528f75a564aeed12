"""Cookies of the console: the session, the theme, and what to say on the next page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

# The cookie with the token, which only the console reads: requests to the API need a header.
SESSION: Final = "postbus_session"
THEME: Final = "postbus_theme"
_SAID: Final = "postbus_said"
THEMES: Final = ("auto", "light", "dark")
_SECONDS_SAID: Final = 4
_YEAR: Final = 365 * 86_400


def cookies_of(header: str | None) -> Mapping[str, str]:
    """The cookies of a request."""
    pairs = (part.strip().partition("=") for part in (header or "").split(";"))
    return {name: unquote(value) for name, _, value in pairs if name}


def cookie(name: str, value: str, *, seconds: int | None = None, secure: bool = False, everywhere: bool = False) -> str:
    """A Set-Cookie header. Without a number of seconds the cookie ends with the browser.

    Without a path, it goes to the pages below the folder of the page that sets it: a proxy may have added a prefix.
    """
    parts = [f"{name}={quote(value, safe='')}", "HttpOnly", "SameSite=Strict"]
    if everywhere:
        parts.append("Path=/")
    if seconds is not None:
        parts.append(f"Max-Age={seconds}")
    if secure:
        parts.append("Secure")
    return "; ".join(parts)


def said(text: str) -> str:
    """A cookie that shows a sentence on the next page."""
    return cookie(_SAID, text[:500], seconds=_SECONDS_SAID, everywhere=True)


def what_was_said(cookies: Mapping[str, str]) -> str:
    return cookies.get(_SAID, "")[:500]


def theme_of(cookies: Mapping[str, str]) -> str:
    found = cookies.get(THEME, "auto")
    return found if found in THEMES else "auto"


def theme(name: str) -> str:
    """A cookie with the theme that was chosen."""
    return cookie(THEME, name if name in THEMES else "auto", seconds=_YEAR)

"""Tells which requests come from a browser, and from which page.

An open server has no tokens, so any page that a browser of this machine has open could use it. A page can make the browser send
a request in many ways that need nobody's leave (an image, a form, a script, a prefetch). It cannot choose the headers by which
such a request is known here: Host, Origin, User-Agent and those that begin with “Sec-”.

Sec-Fetch-* come from browsers of 2020 and later (Safari: 2023), and only if the server's address is https or loopback. Without
them there is Origin, which every browser sends with a request that is not a GET, except Firefox before 70 with forms. Without
both there is User-Agent.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import urlsplit

from postbus.server.problems import Problem
from postbus.server.settings import Settings, is_loopback

Headers = Mapping[bytes, bytes]
Sender = Literal["program", "own page", "user", "unknown page", "other page"]

# Headers of responses to browsers: no other page may embed a response or run it as a script.
SHIELDS: Final = {
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "vary": "Origin, Sec-Fetch-Site",
}
_SAFE: Final = ("GET", "HEAD")
# Requests signed as those to AWS.
_SIGNED: Final = b"AWS4-HMAC-SHA256 "
_OF_OTHERS: Final = "pages of other web sites may not use this server"


def sender_of(headers: Headers) -> Sender:
    """Who sent a request.

    Returns:
        A program; a page of this server; the user, by the address bar or a bookmark; a page in a browser that does not say which;
        a page of another site, or of another port of this machine.
    """
    origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
    if origin is not None and not _is_own(origin, headers) and not (origin == b"null" and site == b"same-origin"):
        return "other page"
    if site is not None:
        return "own page" if site == b"same-origin" else "user" if site == b"none" else "other page"
    if origin is not None:
        return "own page"
    if headers.get(b"authorization", b"").startswith(_SIGNED):
        # No page of another site can add this header: the browser would ask this server for leave first, and get none. Celery
        # signs so, and sends a browser's name.
        return "program"
    # Node sends Sec-Fetch-Mode, and PowerShell sends a browser's name, but neither is a browser.
    agent = headers.get(b"user-agent", b"")
    is_browser = agent.startswith((b"Mozilla/", b"Opera/")) and b"PowerShell/" not in agent
    return "unknown page" if is_browser or b"referer" in headers else "program"


def may_change(sender: Sender, headers: Headers, method: str) -> bool:
    """Whether a request may change something.

    A GET may, for pages of this server, if it was sent by a script: not as an image, a link or a prefetch.
    """
    if sender == "own page":
        return method not in _SAFE or headers.get(b"sec-fetch-mode") in (b"cors", b"same-origin")
    return sender == "program"


class Gate:
    """Decides which requests a server without tokens accepts."""

    def __init__(self, settings: Settings) -> None:
        self._is_closed = not settings.is_open
        self._is_for_this_machine = is_loopback(settings.host)
        self._hosts = frozenset(name.lower() for name in (*settings.allowed_hosts, settings.host))
        self._names_hosts = bool(settings.allowed_hosts)

    def refusal(self, method: str, headers: Headers, sender: Sender) -> Problem | None:
        """Why a request is refused; None if it is accepted."""
        if self._is_closed:
            # A page cannot make a browser send a token.
            return None
        if (self._is_for_this_machine or self._names_hosts or sender != "program") and not self._knows(headers):
            hint = "use its address; if this name belongs to the server, start it with --allow-host NAME"
            return Problem(403, "forbidden", "this server does not accept that host name", hint=hint)
        if sender == "other page" and not _is_visit(method, headers):
            return Problem(403, "forbidden", _OF_OTHERS, hint="open it by its own address, or use a program")
        if method not in _SAFE and not may_change(sender, headers, method):
            return Problem(403, "forbidden", _OF_OTHERS, hint="use a browser of 2020 or later, or a program")
        return None

    def _knows(self, headers: Headers) -> bool:
        """Whether the Host header names this server. Another site can point its own name at our address (DNS rebinding)."""
        name = _name_in(headers.get(b"host", b""))
        if name is None:
            return False
        if name in self._hosts or is_loopback(name):
            return True
        # An address cannot point anywhere else.
        return not self._is_for_this_machine and _is_address(name)


def may_lease(method: str, headers: Headers) -> bool:
    """Whether a request may lease messages, whatever its method."""
    return may_change(sender_of(headers), headers, method) and headers.get(b"sec-purpose") is None


def _is_own(origin: bytes, headers: Headers) -> bool:
    return origin.partition(b"://")[2] == headers.get(b"host", b"")


def _is_visit(method: str, headers: Headers) -> bool:
    """Whether the user followed a link. The page with the link does not see the response."""
    kind = headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")
    return method in _SAFE and b"origin" not in headers and kind == (b"navigate", b"document")


@lru_cache(maxsize=100)
def _name_in(host: bytes) -> str | None:
    """The name or address in a Host header, without the port; HTTP/1.0 may leave it out."""
    try:
        return (urlsplit("//" + host.decode("latin-1")).hostname or "localhost").lower()
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

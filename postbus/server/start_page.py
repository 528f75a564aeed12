"""What the server shows at /: where its parts are, as a page for people and as JSON for programs."""

from __future__ import annotations

from typing import Final

import msgspec

from postbus.server.requests import Response

_PARTS: Final = {
    "/console/": "the console, for people with a browser",
    "/api/streams": "streams, with their sizes",
    "/api/consumers": "consumers of all streams, with backlogs and dead letters",
    "/api/openapi.json": "what requests there are, as OpenAPI",
    "/api/doctor": "problems, and what to do about them",
    "/metrics": "figures, for Prometheus",
    "/health": "whether requests can be served",
}
_LINKS: Final = "".join(
    f'<dt><a href="{path}">{path}</a></dt><dd>{text}</dd>' for path, text in _PARTS.items() if path != "/console/"
)
_PAGE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Postbus</title>'
    "<h1>Postbus</h1><p>A message bus in Postgres. This server speaks HTTP and JSON:</p>"
    f"<dl>{_LINKS}</dl>"
    "<p>A server that requires tokens refuses some of these to a browser. To watch the bus: <code>postbus observe</code></p>"
).encode()
_LIST: Final = msgspec.json.encode({"data": [{"path": path, "about": text} for path, text in _PARTS.items()]})
# The page needs nothing from anywhere.
_HEADERS: Final = {"content-security-policy": "default-src 'none'", "cache-control": "no-store"}


def start_page(accept: str, *, has_console: bool) -> Response:
    """The response, in the form that a client accepts: for browsers, the way to the console if there is one."""
    if "text/html" in accept:
        if has_console:
            # Relative, since a proxy may have added a prefix.
            return Response(b"", 303, {**_HEADERS, "location": "console/"})
        return Response(_PAGE, headers=_HEADERS, content_type="text/html; charset=utf-8")
    return Response(_LIST, headers=_HEADERS)

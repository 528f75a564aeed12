"""The console's files. Their addresses contain a digest of what they hold, so browsers may keep them."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final

from postbus.server.requests import Response

_TYPES: Final = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


@cache
def _content(name: str) -> bytes:
    return files("postbus.server.console").joinpath("static", name).read_bytes()


@cache
def path(name: str) -> str:
    """The address of a file, from the console's first page on."""
    return f"static/{hashlib.sha256(_content(name)).hexdigest()[:16]}/{name}"


def serve(name: str) -> Response | None:
    """A file, under any digest: a page of the release before may still ask for it."""
    if name not in _TYPES:
        return None
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(_content(name), headers=headers, content_type=_TYPES[name])

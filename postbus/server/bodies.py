"""Reads the bodies of requests, up to a limit."""

from __future__ import annotations

from typing import Final

from postbus.server.problems import Problem
from postbus.server.requests import Disconnected, Request

# The server reads a body that is too large to its end, up to this many times the limit, and discards it: a client that is still
# sending when the connection is closed may never see the response. A client that sends Expect gets the response at once.
_DRAINED: Final = 4


async def read_body(request: Request, limit: int) -> bytes:
    """Read the body, unless it is too large.

    Raises:
        Problem: 413.
        Disconnected: The client went away.
    """
    length = request.headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > limit and (int(length) > _DRAINED * limit or b"expect" in request.headers):
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    while size <= _DRAINED * limit:
        event = await request.receive()
        if event["type"] == "http.disconnect":
            raise Disconnected
        part = event["body"]
        size += len(part)
        if size <= limit:
            parts.append(part)
        if not event["more_body"]:
            break
    if size > limit:
        raise _too_large(limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int) -> Problem:
    return Problem(
        413,
        "too_large",
        f"the body is larger than {limit} bytes",
        hint="send fewer messages at once",
        headers={"connection": "close"},
    )

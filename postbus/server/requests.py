"""Requests and responses, directly on ASGI without a framework."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]

_JSON: Final = "application/json"


class Disconnected(Exception):
    """The client disconnected before its request was complete."""


@dataclass(slots=True)
class Request:
    """A request whose body has not been read.

    Attributes:
        method: The HTTP method.
        path: The path, decoded.
        raw_path: The path, not decoded.
        query: The query string, not decoded.
        headers: By their names in lower case; the last of several with the same name.
        receive: Yields the body, and the disconnection of the client.
        id: Its id, in the response and in the log.
        route: The path of its endpoint, with {parameters}; "" until one is found.
        parameters: The values of these parameters.
    """

    method: str
    path: str
    raw_path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    receive: Receive
    id: str
    route: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    async def is_disconnected(self) -> bool:
        """Whether the client is gone. The body of the request must have been read."""
        try:
            async with asyncio.timeout(0):
                event = await self.receive()
        except TimeoutError:
            return False
        return bool(event["type"] == "http.disconnect")


@dataclass(slots=True)
class Response:
    """A response: JSON, unless its headers say otherwise."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = _JSON

    async def send(self, request_id: str, send: Send) -> None:
        headers = [
            (b"content-type", self.content_type.encode("latin-1")),
            (b"content-length", b"%d" % len(self.body)),
            (b"x-request-id", request_id.encode("latin-1")),
        ]
        for name, value in self.headers.items():
            headers.append((name.encode("latin-1"), value.encode("latin-1")))
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})

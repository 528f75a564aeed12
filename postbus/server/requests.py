"""A request and its answer, as ASGI has them, without what a framework would put between."""

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
    """The client went away before all of its request was there."""


@dataclass(slots=True)
class Request:
    """A request whose body has not been read.

    Attributes:
        method: The HTTP method.
        path: The path, decoded.
        raw_path: The path as it came.
        query: The query, as it came.
        headers: By their names in lower case; of several that are alike the last.
        receive: What tells of its body, and that its client is gone.
        id: Its id, which its answer and the log carry.
        route: The path of its endpoint, with {parameters}; "" as long as none was found.
        parameters: What the path has for them.
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
        """Whether the client is gone. Only for a request whose body was read."""
        try:
            async with asyncio.timeout(0):
                event = await self.receive()
        except TimeoutError:
            return False
        return bool(event["type"] == "http.disconnect")


@dataclass(slots=True)
class Response:
    """An answer: JSON, unless its headers say otherwise."""

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

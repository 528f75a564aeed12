"""A client that does as little as it can: requests are made beforehand, and of answers only the length is read."""

from __future__ import annotations

import asyncio
from typing import Final, Self

_LENGTH: Final = b"content-length: "


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """A request as it is sent."""
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    )
    return f"{head}\r\n\r\n".encode() + body


class HttpConnection:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, host: str, port: int) -> Self:
        return cls(*await asyncio.open_connection(host, port))

    async def send(self, request: bytes) -> bytes:
        """The body that is answered.

        Raises:
            RuntimeError: The status is not 200.
        """
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        start = head.index(_LENGTH) + len(_LENGTH)
        body = await self._reader.readexactly(int(head[start : head.index(b"\r", start)]))
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"the server answered {head[:60]!r} {body[:300]!r}")
        return body

    def close(self) -> None:
        self._writer.close()

"""A client that does as little as it can: requests are made beforehand, and of answers only the length is read."""

from __future__ import annotations

import asyncio
from typing import Final, Self

_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "


def request(method: str, path: str, body: bytes = b"") -> bytes:
    """A request as it is sent."""
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    )
    return head.encode() + _END + body


class HttpConnection(asyncio.Protocol):
    """One connection that is kept, and one request at a time: no streams, whose locks and buffers cost as much as the rest."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = b""
        self._answer: asyncio.Future[bytes] | None = None

    @classmethod
    async def open(cls, host: str, port: int) -> Self:
        _, connection = await asyncio.get_running_loop().create_connection(cls, host, port)
        return connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(_END)
        if end < 0 or self._answer is None or self._answer.done():
            return
        head = self._received[:end].lower()
        start = head.index(_LENGTH) + len(_LENGTH)
        length = int(head[start:].split(b"\r", 1)[0])
        body = self._received[end + len(_END) :]
        if len(body) < length:
            return
        self._received = b""
        if head.startswith(b"http/1.1 200"):
            self._answer.set_result(body)
        else:
            self._answer.set_exception(RuntimeError(f"the server answered {head[:60]!r} {body[:300]!r}"))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("the server closed the connection"))

    async def send(self, request: bytes) -> bytes:
        """The body that is answered.

        Raises:
            RuntimeError: The status is not 200.
        """
        self._answer = self._loop.create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        self._transport.close()

"""An endpoint that answers at once, or never, in a process of its own: it does as little as it can, and counts."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

import uvloop

_START_SECONDS: Final = 30.0
_ANSWER: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "
_context: Final = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that runs. The port of one that is closed refuses connections."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


class _Receiver(asyncio.Protocol):
    def __init__(self, is_silent: bool) -> None:
        self._is_silent = is_silent
        self._received = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(_END)) >= 0:
            head = self._received[:end].lower()
            start = head.index(_LENGTH) + len(_LENGTH)
            size = end + len(_END) + int(head[start:].split(b"\r", 1)[0])
            if len(self._received) < size:
                return
            self._received = self._received[size:]
            if not self._is_silent:
                self._transport.write(_ANSWER)


@contextmanager
def receiving(*, is_silent: bool = False) -> Iterator[Endpoint]:
    """An endpoint on any free port."""
    answer, outbox = _context.Pipe(duplex=False)
    process = _context.Process(target=_serve, args=(outbox, is_silent), daemon=True)
    process.start()
    outbox.close()
    try:
        if not answer.poll(_START_SECONDS):
            raise RuntimeError("the endpoint did not start")
        yield Endpoint(answer.recv())
    finally:
        process.terminate()
        process.join()


def _serve(outbox: Connection, is_silent: bool) -> None:
    async def run() -> None:
        server: Any = await asyncio.get_running_loop().create_server(lambda: _Receiver(is_silent), "127.0.0.1", 0)
        outbox.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())

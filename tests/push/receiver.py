"""An endpoint for tests: notes each request, and answers as it is told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Answer = int | tuple[int, dict[str, str]] | tuple[int, dict[str, str], bytes] | None


@dataclass(slots=True)
class Received:
    """One request."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def seq(self) -> int:
        return int(self.id.rpartition("_")[2])

    @property
    def key(self) -> str | None:
        return self.headers.get("postbus-key")

    @property
    def attempt(self) -> int:
        return int(self.headers["postbus-attempt"])

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Receiver:
    """A running endpoint. `answer` may be exchanged at any time; None never answers."""

    answer: Callable[[Received], Answer] = lambda _: 200
    requests: list[Received] = field(default_factory=list)
    delay: float = 0.0
    url: str = ""
    port: int = 0
    open_count: int = 0
    most_open: int = 0
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}/hook"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        received = Received({name.lower(): value for name, value in request.headers.items()}, await request.read())
        self.open_count += 1
        self.most_open = max(self.most_open, self.open_count)
        try:
            self.requests.append(received)
            given = self.answer(received)
            if self.delay:
                await asyncio.sleep(self.delay)
            if given is None:
                await asyncio.sleep(60)
            status, headers, body = (given, {}, b"") if not isinstance(given, tuple) else (*given, b"")[:3]
            return web.Response(status=status or 200, headers=headers, body=body)
        finally:
            self.open_count -= 1


@asynccontextmanager
async def receiving(answer: Callable[[Received], Answer] = lambda _: 200) -> AsyncIterator[Receiver]:
    receiver = Receiver(answer)
    await receiver.start()
    try:
        yield receiver
    finally:
        await receiver.stop()

"""The memory of a server that holds long polls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.http_load import HttpConnection, request
from benchmarks.http_server import HttpServer

_SETTLE_SECONDS: Final = 3.0
_WAIT_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Memory:
    """One round."""

    megabytes: float

    @property
    def figures(self) -> Mapping[str, float]:
        return {"": self.megabytes}


def memory_of_polls(server: HttpServer, place: str, count: int) -> Memory:
    """What the server's process has while so many requests wait for messages that do not come."""
    return Memory(asyncio.run(_hold(server, place, count)))


async def _hold(server: HttpServer, place: str, count: int) -> float:
    path = f"/api/streams/{place}/consumers/consumer_0/receive?wait_for={_WAIT_MS}"
    connections = [await HttpConnection.open(server.host, server.port) for _ in range(count)]
    polls = [asyncio.create_task(connection.send(request("GET", path))) for connection in connections]
    await asyncio.sleep(_SETTLE_SECONDS)
    if any(poll.done() for poll in polls):
        raise RuntimeError("a poll was answered")
    megabytes = server.megabytes()
    for poll, connection in zip(polls, connections, strict=True):
        poll.cancel()
        connection.close()
    await asyncio.gather(*polls, return_exceptions=True)
    return megabytes

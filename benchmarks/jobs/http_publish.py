"""Publishing over HTTP by many connections of one process, as fast as it goes or at a pace."""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import orjson
import uvloop

from benchmarks.comparison import Measurement
from benchmarks.http_load import HttpConnection, request
from benchmarks.http_server import HttpServer
from benchmarks.messages import batches
from benchmarks.processes import run_jobs, run_together
from benchmarks.systems import Postbus
from benchmarks.systems.base import fresh_place

_WARM_UP_CALLS: Final = 12
# A new stream: each session of the server's has to make its plans, which takes 15 ms.
_WARM_UP_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class HttpLoad:
    """How much is published in one round, and by how many connections."""

    connection_count: int
    batch_size: int
    message_count: int

    @property
    def call_count(self) -> int:
        """Calls of one connection."""
        return self.message_count // self.connection_count // self.batch_size


@dataclass(frozen=True, slots=True)
class HttpPublishJob:
    """All connections."""

    server: HttpServer
    place: str
    load: HttpLoad

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            connections = runner.run(_open(self.server, self.load.connection_count))
            requests = _requests(self.place, self.load.call_count, self.load.batch_size)
            runner.run(_publish(connections, requests[:1] * _WARM_UP_CALLS))
            yield lambda: runner.run(self._work(connections, requests))
            for connection in connections:
                connection.close()

    async def _work(self, connections: Sequence[HttpConnection], requests: Sequence[bytes]) -> int:
        await _publish(connections, requests)
        return len(connections) * len(requests) * self.load.batch_size


@dataclass(frozen=True, slots=True)
class HttpPaceJob:
    """Single messages at a rate, whatever the server does.

    Returns the seconds from when each was due to its answer; those of the first two seconds do not count.
    """

    server: HttpServer
    place: str
    connection_count: int
    rate: float
    seconds: float

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], tuple[float, ...]]]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            connections = runner.run(_open(self.server, self.connection_count))
            requests = _requests(self.place, 1000, 1)
            runner.run(_publish(connections, requests[:_WARM_UP_CALLS]))
            # Else a collection of what was imported would stop the load for 20 ms, and the server would be blamed.
            gc.collect()
            gc.freeze()
            yield lambda: runner.run(self._work(connections, requests))
            for connection in connections:
                connection.close()

    async def _work(self, connections: Sequence[HttpConnection], requests: Sequence[bytes]) -> tuple[float, ...]:
        idle: asyncio.Queue[HttpConnection] = asyncio.Queue()
        for connection in connections:
            idle.put_nowait(connection)
        latencies: list[float] = []

        async def send(due_at: float, content: bytes) -> None:
            connection = await idle.get()
            await connection.send(content)
            if due_at >= counted_from:
                latencies.append(time.monotonic() - due_at)
            idle.put_nowait(connection)

        chance = random.Random(1)
        due_at = time.monotonic()
        counted_from = due_at + _WARM_UP_SECONDS
        end = counted_from + self.seconds
        async with asyncio.TaskGroup() as group:
            for content in itertools.cycle(requests):
                due_at += chance.expovariate(self.rate)
                if due_at >= end:
                    break
                if (pause := due_at - time.monotonic()) > 0:
                    await asyncio.sleep(pause)
                group.create_task(send(due_at, content))
        return tuple(latencies)


@dataclass(frozen=True, slots=True)
class HttpLatencies:
    """One round."""

    seconds: tuple[float, ...]

    @property
    def figures(self) -> Mapping[str, float]:
        percentiles = statistics.quantiles(self.seconds, n=100, method="inclusive")
        return {f"p{percent}": 1000 * percentiles[percent - 1] for percent in (50, 95, 99)}


def publish_over_http(server: HttpServer, url: str, load: HttpLoad) -> Measurement:
    """One round into a new stream, which must then hold all that was published.

    Raises:
        RuntimeError: It does not.
    """
    system = Postbus()
    with fresh_place(system, url) as place:
        measurement = run_together([HttpPublishJob(server, place, load)])
        published = measurement.message_count + _WARM_UP_CALLS * load.connection_count * load.batch_size
        stored = system.count(url, place)
        if stored != published:
            raise RuntimeError(f"the server was given {published} messages and the stream holds {stored}")
        return measurement


def latencies_over_http(server: HttpServer, url: str, *, rate: float, seconds: float) -> HttpLatencies:
    """One round of single messages at a rate, into a new stream."""
    with fresh_place(Postbus(), url) as place:
        (span,) = run_jobs([HttpPaceJob(server, place, 64, rate, seconds)])
    return HttpLatencies(span.result)


async def _open(server: HttpServer, count: int) -> list[HttpConnection]:
    return [await HttpConnection.open(server.host, server.port) for _ in range(count)]


async def _publish(connections: Sequence[HttpConnection], requests: Sequence[bytes]) -> None:
    async def publish(connection: HttpConnection) -> None:
        for content in requests:
            await connection.send(content)

    await asyncio.gather(*map(publish, connections))


def _requests(place: str, count: int, batch_size: int) -> list[bytes]:
    path = f"/api/streams/{place}/messages"
    return [
        request("POST", path, orjson.dumps({"messages": [{"key": each.key, "data": each.data} for each in batch]}))
        for batch in batches(0, batch_count=count, batch_size=batch_size)
    ]

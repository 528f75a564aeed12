"""Signed webhooks by many connections of one process, as fast as it goes or at a pace."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import hmac
import itertools
import random
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import uvloop

import postbus
from benchmarks.comparison import Measurement
from benchmarks.http_load import HttpConnection
from benchmarks.http_server import HttpServer
from benchmarks.jobs.http_publish import HttpLatencies
from benchmarks.processes import run_jobs, run_together

_SECRET: Final = "s" * 32
_WARM_UP: Final = 12
_WARM_UP_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class WebhookLoad:
    """How many are sent in one round, and by how many connections."""

    connection_count: int
    message_count: int


@dataclass(frozen=True, slots=True)
class WebhookJob:
    """All connections."""

    server: HttpServer
    source: str
    load: WebhookLoad

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            count = self.load.connection_count
            connections = runner.run(_open(self.server, count))
            requests = _requests(self.source, self.load.message_count + _WARM_UP * count)
            shares = [requests[n::count] for n in range(count)]
            runner.run(_send(connections, [share[:_WARM_UP] for share in shares]))
            yield lambda: runner.run(self._work(connections, [share[_WARM_UP:] for share in shares]))
            for connection in connections:
                connection.close()

    async def _work(self, connections: Sequence[HttpConnection], shares: Sequence[Sequence[bytes]]) -> int:
        await _send(connections, shares)
        return sum(map(len, shares))


@dataclass(frozen=True, slots=True)
class WebhookPaceJob:
    """Webhooks at a rate, whatever the server does. Returns the seconds from when each was due to its answer."""

    server: HttpServer
    source: str
    rate: float
    seconds: float

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], tuple[float, ...]]]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            connections = runner.run(_open(self.server, 64))
            requests = _requests(self.source, int(self.rate * (self.seconds + _WARM_UP_SECONDS) * 1.2) + 100)
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


def send_webhooks(server: HttpServer, url: str, load: WebhookLoad) -> Measurement:
    """One round into a new stream, which must then hold all of them.

    Raises:
        RuntimeError: It does not.
    """
    with _source(url) as source, postbus.connect(url, upkeep=False) as bus:
        measurement = run_together([WebhookJob(server, source, load)])
        sent = measurement.message_count + _WARM_UP * load.connection_count
        stored = bus.stream_info(source).last_seq
        if stored < sent:
            raise RuntimeError(f"the server was sent {sent} webhooks and the stream holds {stored}")
        return measurement


def latencies_of_webhooks(server: HttpServer, url: str, *, rate: float, seconds: float) -> HttpLatencies:
    """One round at a rate, into a new stream."""
    with _source(url) as source:
        (span,) = run_jobs([WebhookPaceJob(server, source, rate, seconds)])
    return HttpLatencies(span.result)


@contextmanager
def _source(url: str) -> Iterator[str]:
    name = f"hooks-{secrets.token_hex(6)}"
    with postbus.connect(url, upkeep=False) as bus:
        bus.create_stream(name, dedup_window=3 * 86_400)
        bus.webhook_sources.create(name, name, kind="github", secrets=[_SECRET])
        try:
            yield name
        finally:
            bus.drop_stream(name)


async def _open(server: HttpServer, count: int) -> list[HttpConnection]:
    return [await HttpConnection.open(server.host, server.port) for _ in range(count)]


async def _send(connections: Sequence[HttpConnection], shares: Sequence[Sequence[bytes]]) -> None:
    async def send(connection: HttpConnection, share: Sequence[bytes]) -> None:
        for content in share:
            await connection.send(content)

    await asyncio.gather(*map(send, connections, shares))


def _requests(source: str, count: int) -> list[bytes]:
    """Requests as GitHub sends them, of 500 bytes."""
    found = []
    for number in range(count):
        body = b'{"number": %d, "text": "%s"}' % (number, b"x" * 470)
        signature = hmac.digest(_SECRET.encode(), body, hashlib.sha256).hex()
        head = (
            f"POST /api/webhook/{source} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"x-github-event: push\r\nx-github-delivery: {source}-{number}\r\n"
            f"x-hub-signature-256: sha256={signature}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        found.append(head.encode() + body)
    return found

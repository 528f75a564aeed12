"""Workers that run a handler for each message: Postbus, and two job queues on Postgres with workers of their own.

Each runs one process with 16 handlers at a time on a backlog, until nothing is left, as its documentation shows.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol

import asyncpg
import orjson
import pgqueuer
import procrastinate
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

import postbus
from benchmarks.messages import message
from postbus.db import migrations

CONCURRENCY: Final = 16
_AT_ONCE: Final = 1000

Work = Callable[[], Coroutine[Any, Any, None]]


class Tally:
    """How many messages were handled, and when the last was: what a worker does after that is not counted."""

    def __init__(self) -> None:
        self.count = 0
        self.last_at = 0.0

    def handled(self, data: dict[str, Any]) -> None:
        self.count += data["id"] >= 0
        self.last_at = time.monotonic()


class JobQueue(Protocol):
    name: str

    async def install(self, url: str) -> None: ...

    async def fill(self, url: str, job_count: int) -> None: ...

    def opened(self, url: str, tally: Tally) -> AbstractAsyncContextManager[Work]:
        """A worker, ready to handle all there is."""


class PostbusWorkers:
    name = "postbus"

    async def install(self, url: str) -> None:
        migrations.migrate(url)
        async with await postbus.connect_async(url) as bus:
            await bus.create_queue("jobs")

    async def fill(self, url: str, job_count: int) -> None:
        async with await postbus.connect_async(url) as bus:
            for start in range(0, job_count, _AT_ONCE):
                numbers = range(start, min(start + _AT_ONCE, job_count))
                await bus.publish_many("jobs", [postbus.Message(data=message(number).data) for number in numbers])

    @asynccontextmanager
    async def opened(self, url: str, tally: Tally) -> AsyncIterator[Work]:
        async with await postbus.connect_async(url) as bus:

            async def handle(delivery: postbus.Delivery) -> None:
                tally.handled(delivery.data)

            async def work() -> None:
                await bus.queue("jobs").run(
                    handle, concurrency=CONCURRENCY, stop_when_empty=True, install_signal_handlers=False
                )

            yield work


class Procrastinate:
    name = "procrastinate"

    async def install(self, url: str) -> None:
        async with procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url)).open_async() as app:
            await app.schema_manager.apply_schema_async()

    async def fill(self, url: str, job_count: int) -> None:
        app, task = _procrastinate(url, Tally())
        async with app.open_async():
            for start in range(0, job_count, _AT_ONCE):
                numbers = range(start, min(start + _AT_ONCE, job_count))
                await task.batch_defer_async(*({"message": message(number).data} for number in numbers))

    @asynccontextmanager
    async def opened(self, url: str, tally: Tally) -> AsyncIterator[Work]:
        logging.getLogger("procrastinate").setLevel(logging.WARNING)
        app, _ = _procrastinate(url, tally)
        async with app.open_async():

            async def work() -> None:
                await app.run_worker_async(concurrency=CONCURRENCY, wait=False, install_signal_handlers=False)

            yield work


def _procrastinate(url: str, tally: Tally) -> tuple[Any, Any]:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=4, max_size=20))

    @app.task(name="handle")
    async def handle(message: dict[str, Any]) -> None:
        tally.handled(message)

    return app, handle


@asynccontextmanager
async def _connection(url: str) -> AsyncIterator[Any]:
    """By asyncpg, the driver that pgqueuer recommends."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


class PgQueuer:
    name = "pgqueuer"

    async def install(self, url: str) -> None:
        async with _connection(url) as connection:
            await Queries(AsyncpgDriver(connection)).install()

    async def fill(self, url: str, job_count: int) -> None:
        async with _connection(url) as connection:
            queries = Queries(AsyncpgDriver(connection))
            for start in range(0, job_count, _AT_ONCE):
                numbers = range(start, min(start + _AT_ONCE, job_count))
                payloads: list[bytes | None] = [orjson.dumps(message(number).data) for number in numbers]
                await queries.enqueue(["handle"] * len(payloads), payloads, [0] * len(payloads))

    @asynccontextmanager
    async def opened(self, url: str, tally: Tally) -> AsyncIterator[Work]:
        async with _connection(url) as connection:
            queue = pgqueuer.QueueManager(Queries(AsyncpgDriver(connection)))

            @queue.entrypoint("handle")
            async def handle(job: pgqueuer.Job) -> None:
                tally.handled(orjson.loads(job.payload or b"null"))

            async def work() -> None:
                # It asks for at least twice as many jobs as a batch has.
                await queue.run(
                    batch_size=CONCURRENCY // 2, max_concurrent_tasks=CONCURRENCY, mode=QueueExecutionMode.drain
                )

            yield work


async def prepare(system: JobQueue, url: str, job_count: int) -> None:
    await system.install(url)
    await system.fill(url, job_count)


def run_prepare(system: JobQueue, url: str, job_count: int) -> None:
    asyncio.run(prepare(system, url, job_count))

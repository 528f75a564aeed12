"""FastAPI, Starlette, Litestar and Quart: a bus, and workers, that live as long as the app does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import postbus

_log = logging.getLogger("postbus.worker")


@dataclass(frozen=True, slots=True)
class Handler:
    """A worker of the app.

    Attributes:
        stream: The stream, or the queue.
        handle: Called with each delivery. An async function runs in the event loop of the app, a plain one in a thread.
        consumer: The consumer; None for the one of a queue.
        concurrency: How many messages are handled at the same time.
        handler_timeout: How many seconds the handler may take for a message before it counts as failed; None sets no limit.
    """

    stream: str
    handle: Callable[..., Any]
    consumer: str | None = None
    concurrency: int = 10
    handler_timeout: float | None = None


def lifespan(
    url: str | None = None, *handlers: Handler, token: str | None = None, grace: float = 20
) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """The `lifespan=` of an app. It opens a bus as `app.state.postbus`, and closes it after the last request.

        app = FastAPI(lifespan=lifespan(None, Handler("orders", bill, consumer="billing")))

    Each process of the app has its own workers, which share the messages. When the app stops, they finish what they have begun
    and give back the rest. If a worker ends by an error (its consumer was dropped, say), the app goes on, and stopping it raises
    that error.

    Args:
        url: Where Postbus is, as for `postbus.connect`.
        handlers: The workers. Their consumers have to exist when the app starts.
        token: For a server that requires one.
        grace: How many seconds handlers may go on when the app stops.
    """

    @asynccontextmanager
    async def running(app: Any) -> AsyncIterator[None]:
        async with await postbus.connect_async(url, token=token) as bus:
            app.state.postbus = bus
            workers = [await _worker(bus, each, grace) for each in handlers]
            async with _working(workers):
                yield

    return running


async def _worker(bus: postbus.AsyncBus, handler: Handler, grace: float) -> postbus.AsyncWorker:
    consumer = bus.queue(handler.stream) if handler.consumer is None else bus.consumer(handler.stream, handler.consumer)
    # If it does not exist, the app does not start.
    await consumer.info()
    return postbus.AsyncWorker(
        consumer,
        handler.handle,
        concurrency=handler.concurrency,
        handler_timeout=handler.handler_timeout,
        grace=grace,
        # The server that runs the app has its own.
        install_signal_handlers=False,
    )


@asynccontextmanager
async def _working(workers: list[postbus.AsyncWorker]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each.run()) for each in workers]
    for task in tasks:
        task.add_done_callback(_note_failure)
    try:
        yield
    finally:
        for worker in workers:
            worker.stop()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for result in ended:
        if isinstance(result, BaseException):
            raise result


def _note_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a worker has ended: %s", error)

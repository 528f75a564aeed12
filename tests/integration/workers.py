"""What the tests of workers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import postbus
from postbus import Delivery, Message


async def publish(bus: Any, stream: str, *keys: str | None) -> None:
    """A message for each key; its data is its number, from 1."""
    await bus.publish_many(stream, [Message(key=key, data=n) for n, key in enumerate(keys, start=1)])


def worker_of(consumer: Any, handler: Callable[..., Any], **settings: Any) -> Any:
    """A worker of either kind, whose run can be awaited."""
    if isinstance(consumer, postbus.AsyncConsumer):
        return postbus.AsyncWorker(consumer, handler, **settings)
    return postbus.Worker(consumer._consumer, handler, **settings)


async def run(worker: Any) -> Any:
    return await (worker.run() if isinstance(worker, postbus.AsyncWorker) else asyncio.to_thread(worker.run))


class Seen:
    """A handler that keeps what it was called with, and then does what it is told."""

    def __init__(self, then: Callable[[Delivery], None] = lambda delivery: None) -> None:
        self.deliveries: list[Delivery] = []
        self._then = then

    def __call__(self, delivery: Delivery, *_: Any) -> None:
        self.deliveries.append(delivery)
        self._then(delivery)

    @property
    def numbers(self) -> list[int]:
        return [delivery.data for delivery in self.deliveries]

    @property
    def attempts(self) -> list[tuple[int, int]]:
        return [(delivery.data, delivery.attempt) for delivery in self.deliveries]


def once(error: Exception, number: int = 1) -> Callable[[Delivery], None]:
    """Raises for one message, the first time."""

    def then(delivery: Delivery) -> None:
        if (delivery.data, delivery.attempt) == (number, 1):
            raise error

    return then


async def assert_empty(consumer: Any) -> None:
    stats = await consumer.stats()
    assert (stats.lag_estimate, stats.in_flight, stats.waiting) == (0, 0, 0)

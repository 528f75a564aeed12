"""Pushing by one process that sends for all endpoints of a bus."""

from __future__ import annotations

import asyncio
import resource
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import uvloop

import postbus
from benchmarks.comparison import Measurement, Single
from benchmarks.messages import batches
from benchmarks.processes import run_jobs, run_together
from postbus.http.guard import Guard
from postbus.push.service import PushService

_BATCH: Final = 1000
_LOOK_SECONDS: Final = 0.02


@dataclass(frozen=True, slots=True)
class PushLoad:
    """What is pushed in one round.

    Attributes:
        message_count: How many messages.
        order: The order of the consumer.
        mode: The mode of its endpoint.
        concurrency: How many requests are open at once.
    """

    message_count: int
    order: Any = "none"
    mode: Any = "raw"
    concurrency: int = 50


@dataclass(frozen=True, slots=True)
class PushJob:
    """A process that sends until a consumer has nothing left."""

    url: str
    stream: str
    consumer: str
    message_count: int

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], int]]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            bus = runner.run(postbus.connect_async(self.url, pool_size=5, upkeep=False))
            yield lambda: runner.run(self._work(bus))
            runner.run(bus.close())

    async def _work(self, bus: postbus.AsyncBus) -> int:
        service = PushService(bus, Guard(["127.0.0.0/8"]))
        service.start()
        consumer = bus.consumer(self.stream, self.consumer)
        while (await consumer.stats()).backlog:
            await asyncio.sleep(_LOOK_SECONDS)
        await service.stop(grace=0)
        return self.message_count


@dataclass(frozen=True, slots=True)
class IdlePushJob:
    """A process that sends for all endpoints of a bus, for a while. Returns the megabytes that it took at most."""

    url: str
    seconds: float

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], float]]:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            bus = runner.run(postbus.connect_async(self.url, pool_size=5, upkeep=False))
            yield lambda: runner.run(self._work(bus))
            runner.run(bus.close())

    async def _work(self, bus: postbus.AsyncBus) -> float:
        service = PushService(bus, Guard(["127.0.0.0/8"]))
        service.start()
        await asyncio.sleep(self.seconds)
        await service.stop(grace=0)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def push(url: str, endpoint: str, load: PushLoad, *, beside: Sequence[str] = ()) -> Measurement:
    """One round: a new stream whose consumer is pushed to an endpoint, perhaps beside others that get the same messages."""
    stream = f"push-{secrets.token_hex(6)}"
    with postbus.connect(url, upkeep=False) as bus:
        bus.create_stream(stream, partitions=8)
        settings: dict[str, Any] = {"mode": load.mode, "concurrency": load.concurrency, "batch_size": 100}
        for name, target in (("measured", endpoint), *((f"beside-{n}", each) for n, each in enumerate(beside))):
            bus.create_consumer(stream, name, order=load.order).push.set(target, **settings)
        for batch in batches(
            0, batch_count=max(1, load.message_count // _BATCH), batch_size=min(_BATCH, load.message_count)
        ):
            bus.publish_many(stream, [postbus.Message(key=each.key, data=each.data) for each in batch])
        try:
            return run_together([PushJob(url, stream, "measured", load.message_count)])
        finally:
            bus.drop_stream(stream)


def memory_of_endpoints(url: str, endpoint: str, count: int, seconds: float) -> Single:
    """The memory of a process that sends for so many endpoints, each of which gets each message of one stream."""
    stream = f"push-{secrets.token_hex(6)}"
    with postbus.connect(url, upkeep=False) as bus:
        bus.create_stream(stream)
        for number in range(count):
            bus.create_consumer(stream, f"c{number}", order="none").push.set(endpoint)
        bus.publish_many(stream, [postbus.Message(data="x" * 1000) for _ in range(20)])
        try:
            (span,) = run_jobs([IdlePushJob(url, seconds)])
            return Single(span.result)
        finally:
            bus.drop_stream(stream)

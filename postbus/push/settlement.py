"""Settles deliveries after their requests: acks together what was finished meanwhile, whole leases if possible."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from postbus.model.delivery import Batch, Delivery
from postbus.model.errors import Error, Unavailable
from postbus.operations import deliveries as operations
from postbus.operations.call import Call

# How long finished messages wait for the others of their lease.
_PATIENCE: Final = 0.1
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 5.0

Run = Callable[[Call[int]], Awaitable[int]]


@dataclass(slots=True)
class _Lease:
    open_count: int
    is_whole: bool = True
    done: list[str] = field(default_factory=list)


class Settlement:
    """The open leases of one sender.

    Args:
        run: Runs an operation.
        stream: The stream.
        consumer: The consumer.
        settled: Called after each call.
    """

    def __init__(self, run: Run, stream: str, consumer: str, settled: Callable[[], None]) -> None:
        self._run = run
        self._settled = settled
        self._place = (stream, consumer)
        self._leases: dict[str, _Lease] = {}
        self._ready: list[str] = []
        self._flushing: asyncio.Task[None] | None = None
        self._is_over = False

    def opened(self, batch: Batch) -> None:
        for delivery in batch:
            token = _token(delivery)
            if token in self._leases:
                self._leases[token].open_count += 1
            else:
                self._leases[token] = _Lease(1)

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Ack, soon."""
        for delivery in deliveries:
            token = _token(delivery)
            lease = self._leases[token]
            lease.open_count -= 1
            lease.done.append(delivery.ack_id)
            if not lease.open_count:
                self._ready += [token] if lease.is_whole else lease.done
                del self._leases[token]
        self._flush_soon()

    async def fail(self, deliveries: Sequence[Delivery], delay: timedelta | None, reason: str) -> None:
        """Nack what has failed. Later messages of their keys in the same leases are given back with them."""
        await self._settle(deliveries, delay=delay, reason=reason, untried=False)

    async def give_back(self, deliveries: Sequence[Delivery], delay: timedelta, reason: str) -> None:
        """Give back what was not tried: it does not count as an attempt."""
        await self._settle(deliveries, delay=delay, reason=reason, untried=True)

    async def _settle(
        self, deliveries: Sequence[Delivery], *, delay: timedelta | None, reason: str, untried: bool
    ) -> None:
        if deliveries:
            ids = self._left(deliveries)
            await self._retry(operations.nack(*self._place, ids, delay=delay, reason=reason, untried=untried))

    async def bury(self, deliveries: Sequence[Delivery], reason: str) -> None:
        """Make them dead letters."""
        await self._retry(operations.terminate(*self._place, self._left(deliveries), reason=reason))

    def _left(self, deliveries: Sequence[Delivery]) -> list[str]:
        for delivery in deliveries:
            token = _token(delivery)
            lease = self._leases[token]
            lease.open_count -= 1
            lease.is_whole = False
            if not lease.open_count:
                self._ready += lease.done
                del self._leases[token]
        self._flush_soon()
        return [each.ack_id for each in deliveries]

    async def close(self) -> None:
        """Ack what is left."""
        self._is_over = True
        if self._flushing is not None:
            await self._flushing
        self._take_done()
        await self._flush()

    def _flush_soon(self) -> None:
        if self._flushing is None and (self._ready or self._leases) and not self._is_over:
            self._flushing = asyncio.create_task(self._flush_all())

    async def _flush_all(self) -> None:
        try:
            while True:
                if not self._ready:
                    await asyncio.sleep(0 if self._is_over else _PATIENCE)
                    if not self._ready:
                        self._take_done()
                    if not self._ready:
                        return
                await self._flush()
        finally:
            self._flushing = None

    def _take_done(self) -> None:
        """Take finished messages whose leases have others that take longer."""
        for lease in self._leases.values():
            if lease.done:
                lease.is_whole = False
                self._ready += lease.done
                lease.done = []

    async def _flush(self) -> None:
        ids, self._ready = self._ready, []
        if ids:
            await self._retry(operations.ack(*self._place, ids))

    async def _retry(self, call: Call[int]) -> int:
        """Call until Postgres answers. If the consumer is gone, there is nothing left to settle."""
        pause = _FIRST_PAUSE
        while True:
            try:
                count = await self._run(call)
            except Unavailable:
                if self._is_over:
                    return 0
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            except Error:
                return 0
            else:
                self._settled()
                return count


def _token(delivery: Delivery) -> str:
    return delivery.ack_id.partition("-")[0]

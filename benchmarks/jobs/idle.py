"""Waiting for messages that never come, in one process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from benchmarks.cpu import ServerClock
from benchmarks.processes import run_jobs
from benchmarks.systems import Postbus

# By then all are connected and have looked several times.
_SETTLE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class CpuUse:
    """One round: the CPU time used by the process that waits, and by the whole server, if it is on this machine."""

    client_seconds: float
    server_seconds: float | None
    seconds: float

    @property
    def figures(self) -> Mapping[str, float]:
        used = {"client": self.client_seconds, "server": self.server_seconds}
        return {name: 100 * value / self.seconds for name, value in used.items() if value is not None}


@dataclass(frozen=True, slots=True)
class IdleJob:
    """All consumers of these places in long poll, on one bus."""

    system: Postbus
    url: str
    places: Sequence[str]
    seconds: float

    @contextmanager
    def prepared(self) -> Iterator[Callable[[], CpuUse]]:
        yield lambda: asyncio.run(self._work())

    async def _work(self) -> CpuUse:
        server = ServerClock.of(self.url)
        async with asyncio.TaskGroup() as group:
            polling = group.create_task(self.system.poll_for_ever(self.url, self.places))
            await asyncio.sleep(_SETTLE_SECONDS)
            use = await self._watch(server)
            polling.cancel()
        return use

    async def _watch(self, server: ServerClock | None) -> CpuUse:
        server_before = server.seconds() if server else 0.0
        client_before, started_at = time.process_time(), time.monotonic()
        await asyncio.sleep(self.seconds)
        client_seconds, seconds = time.process_time() - client_before, time.monotonic() - started_at
        return CpuUse(client_seconds, server.seconds() - server_before if server else None, seconds)


def idle(system: Postbus, url: str, places: Sequence[str], *, seconds: float) -> CpuUse:
    """One round."""
    [span] = run_jobs([IdleJob(system, url, tuple(places), seconds)])
    return span.result

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

import postbus
from postbus.http.guard import Guard
from postbus.push.service import PushService
from tests import servers
from tests.push.receiver import Receiver, receiving

pytestmark = pytest.mark.newest_server


@pytest.fixture(scope="session", params=["pg18"])
def server(request: pytest.FixtureRequest) -> Any:
    """What whoever sends asks of Postgres is the same on every version."""
    with servers.running(request.param) as server:
        yield server


@pytest.fixture
async def bus(fresh_url: str) -> AsyncIterator[postbus.AsyncBus]:
    async with await postbus.connect_async(fresh_url) as bus:
        yield bus


@pytest.fixture
async def endpoint() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@asynccontextmanager
async def sending(
    url: str, *, allowed: tuple[str, ...] = ("127.0.0.0/8",), grace: float = 5
) -> AsyncIterator[PushService]:
    """A process that sends."""
    async with await postbus.connect_async(url, pool_size=4, upkeep=False) as bus:
        service = PushService(bus, Guard(allowed))
        service.start()
        try:
            yield service
        finally:
            await service.stop(grace=grace)


async def eventually(condition: Callable[[], Any], what: str, seconds: float = 15) -> None:
    for _ in range(int(seconds * 100)):
        found = condition()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"not in time: {what}")

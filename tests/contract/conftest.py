"""One suite for four ways to a bus: over Postgres and over HTTP, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import postbus
from tests.buses import AwaitableBus
from tests.server.serving import Api, serving


@pytest.fixture(scope="session")
def api(url: str) -> Iterator[Api]:
    """A server on the tests' database."""
    with serving(url) as api:
        yield api


@pytest.fixture(params=["postgres-sync", "postgres-async", "http-sync", "http-async"])
async def bus(request: pytest.FixtureRequest, url: str, api: Api) -> AsyncIterator[Any]:
    """A bus to await, of four kinds in turn. Typed Any: one suite stands for all."""
    way, _, kind = request.param.partition("-")
    target = url if way == "postgres" else api.url
    if kind == "async":
        async with await postbus.connect_async(target) as bus:
            yield bus
    else:
        with postbus.connect(target) as sync_bus:
            yield AwaitableBus(sync_bus)


@pytest.fixture
async def billing(bus: Any, stream: str) -> Any:
    """A consumer of the stream."""
    return await bus.create_consumer(stream, "billing")

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


@pytest.fixture(scope="session")
def sync_buses(url: str, api: Api) -> Iterator[dict[str, postbus.Bus]]:
    """Those that no event loop owns are connected once."""
    with postbus.connect(url) as direct, postbus.connect(api.url) as over_http:
        yield {"postgres": direct, "http": over_http}


@pytest.fixture(params=["postgres-sync", "postgres-async", "http-sync", "http-async"])
async def bus(
    request: pytest.FixtureRequest, url: str, api: Api, sync_buses: dict[str, postbus.Bus]
) -> AsyncIterator[Any]:
    """A bus to await, of four kinds in turn. Typed Any: one suite stands for all."""
    way, _, kind = request.param.partition("-")
    if kind == "sync":
        yield AwaitableBus(sync_buses[way])
        return
    async with await postbus.connect_async(url if way == "postgres" else api.url) as bus:
        yield bus


@pytest.fixture
async def billing(bus: Any, stream: str) -> Any:
    """A consumer of the stream."""
    return await bus.create_consumer(stream, "billing")

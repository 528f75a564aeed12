from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

import postbus
from postbus.maintenance import pace
from tests import servers
from tests.buses import AwaitableBus


@pytest.fixture(scope="session", autouse=True)
def nobody_keeps_up() -> Iterator[None]:
    """The upkeep in the background of a bus begins only where a test is about it: others want to see what they did themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pace, "FIRST_SECONDS", 1e6)
        yield


@pytest.fixture(scope="session", params=servers.names())
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    """A Postgres; every test that uses one runs on each there is."""
    with servers.running(request.param) as server:
        yield server


@pytest.fixture(scope="session")
def url(server: servers.Server) -> Iterator[str]:
    """A database with Postbus, shared by the tests of a session: use stream names of your own."""
    with servers.database(server.url) as url:
        yield url


@pytest.fixture
def fresh_url(server: servers.Server) -> Iterator[str]:
    """A database with Postbus, for this test alone."""
    with servers.database(server.url) as url:
        yield url


@pytest.fixture
def empty_url(server: servers.Server) -> Iterator[str]:
    """A database without Postbus."""
    with servers.database(server.url, install=False) as url:
        yield url


@pytest.fixture(params=["sync", "async"])
async def bus(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Any]:
    """A bus to await, of both kinds in turn. Typed Any: one suite stands for both."""
    if request.param == "async":
        async with await postbus.connect_async(url) as bus:
            yield bus
    else:
        with postbus.connect(url) as sync_bus:
            yield AwaitableBus(sync_bus)


@pytest.fixture
def name() -> str:
    """A stream's name that no other test uses."""
    return f"stream-{secrets.token_hex(6)}"


@pytest.fixture
async def stream(bus: Any, name: str) -> str:
    """A json stream with four partitions."""
    await bus.create_stream(name, partitions=4)
    return name


@pytest.fixture
def connect(url: str) -> Iterator[Any]:
    """Opens plain connections to the test's database; they are closed after it."""
    opened: list[psycopg.Connection[Any]] = []

    def open_connection(**settings: Any) -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(url, **{"autocommit": True, **settings}))
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.close()


@pytest.fixture
def sql(connect: Any) -> psycopg.Connection[Any]:
    """An autocommit connection to the test's database."""
    connection: psycopg.Connection[Any] = connect()
    return connection


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Both twins run on the newest server; an older one runs one of them, which is enough to find what differs in its SQL.

    What does not depend on the server's version (`newest_server`) runs there only.
    """
    newest = servers.names()[0]
    left_out = {item for item in items if _is_repetition(item, newest)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_repetition(item: pytest.Item, newest: str) -> bool:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    is_one_of_two = parameters.get("bus") == "sync" or item.get_closest_marker("newest_server") is not None
    return is_one_of_two and parameters.get("server", newest) != newest

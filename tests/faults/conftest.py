from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import postbus
from tests import servers
from tests.faults import endings
from tests.faults.endings import wait_until_up


@pytest.fixture(scope="session")
def own_server() -> Iterator[servers.Server]:
    """A server that tests may end: no other tests use it."""
    with servers.running("pg18") as server:
        yield server


@pytest.fixture
def own_url(own_server: servers.Server) -> Iterator[str]:
    """A database with Postbus on the server that tests may end."""
    wait_until_up(own_server.url)
    with servers.database(own_server.url) as url:
        yield url
        wait_until_up(own_server.url)


@pytest.fixture
def orders(own_url: str) -> str:
    """A stream there."""
    with postbus.connect(own_url) as bus:
        bus.create_stream("orders")
    return "orders"


@pytest.fixture
def end_server(own_server: servers.Server) -> Callable[[str], None]:
    """Ends the server in one of the ways of ENDINGS, with all sessions that it has."""
    return lambda how: endings.end_server(own_server, how)

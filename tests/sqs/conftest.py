from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import postbus
from tests import servers
from tests.server.serving import Api, serving
from tests.sqs.clients import PROTOCOLS, client


@pytest.fixture(scope="session", params=["pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    """What the wire asks of Postgres is tested on every version elsewhere: here one is enough."""
    with servers.running(request.param) as server:
        yield server


@pytest.fixture(scope="session")
def api(url: str) -> Iterator[Api]:
    with serving(url) as api:
        yield api


@pytest.fixture(scope="session")
def clients(api: Api) -> dict[str, Any]:
    return {protocol: client(api.url, protocol) for protocol in PROTOCOLS}


@pytest.fixture(params=PROTOCOLS)
def sqs(request: pytest.FixtureRequest, clients: dict[str, Any]) -> Any:
    """A client that speaks each protocol in turn."""
    return clients[request.param]


@pytest.fixture
def json_sqs(clients: dict[str, Any]) -> Any:
    """A client that speaks JSON, for what does not depend on the protocol."""
    return clients["json"]


@pytest.fixture(scope="session")
def native(url: str) -> Iterator[postbus.Bus]:
    """The bus behind the server."""
    with postbus.connect(url) as bus:
        yield bus


Creating = Callable[..., str]


@pytest.fixture
def create(json_sqs: Any) -> Creating:
    """Creates queues with names of their own."""

    def create(ending: str = "", **attributes: str) -> str:
        name = f"q-{secrets.token_hex(6)}{ending}"
        if ending == ".fifo":
            attributes["FifoQueue"] = "true"
        return str(json_sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    return create


@pytest.fixture
def queue(create: Creating) -> str:
    """The URL of a standard queue."""
    return create()


@pytest.fixture
def fifo(create: Creating) -> str:
    """The URL of a FIFO queue that finds duplicates by content."""
    return create(".fifo", ContentBasedDeduplication="true")

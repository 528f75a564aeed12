from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests import servers
from tests.server.serving import Api, serving


@pytest.fixture(scope="session", params=["pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[servers.Server]:
    """What the server asks of Postgres is tested on every version elsewhere: here one is enough."""
    with servers.running(request.param) as server:
        yield server


@pytest.fixture(scope="session")
def api(url: str) -> Iterator[Api]:
    """A server that everybody may use, shared by the tests of a session."""
    with serving(url) as api:
        yield api


@pytest.fixture
def orders(api: Api) -> Stream:
    """A stream with a consumer, for this test alone."""
    name = f"orders-{secrets.token_hex(6)}"
    api.data("POST", "/api/streams", {"name": name, "partitions": 4})
    stream = Stream(api, name)
    stream.consumer("billing")
    return stream


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream and its consumer "billing", over HTTP."""

    api: Api
    name: str

    @property
    def path(self) -> str:
        return f"/api/streams/{self.name}"

    @property
    def billing(self) -> str:
        return f"{self.path}/consumers/billing"

    def consumer(self, name: str, **settings: Any) -> Any:
        return self.api.data("POST", f"{self.path}/consumers", {"name": name, **settings})

    def send(self, *messages: tuple[str | None, Any]) -> list[int]:
        body = {"messages": [{"key": key, "data": data} for key, data in messages]}
        seqs: list[int] = self.api.data("POST", f"{self.path}/messages", body)["seqs"]
        return seqs

    def receive(self, consumer: str = "billing", **query: Any) -> list[Any]:
        received: list[Any] = self.api.data("GET", f"{self.path}/consumers/{consumer}/receive", params=query)
        return received

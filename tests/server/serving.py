"""Real servers for tests: uvicorn on a free port, in a thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from postbus.server import run
from postbus.server.run import Server
from postbus.server.settings import Settings
from tests.waiting import until


@dataclass(slots=True)
class Api:
    """A client of a running server."""

    url: str
    server: Server
    thread: threading.Thread
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=30))

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.client.request(method, self.url + path, **more)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.request("POST", path, json=body, **more)

    def data(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """The data of an answer that has to be one."""
        answer = (
            self.request(method, path, json=body, **more) if body is not None else self.request(method, path, **more)
        )
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return answer.json()["data"]

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()


@contextmanager
def serving(url: str, **settings: Any) -> Iterator[Api]:
    """A server of its own process's thread, until the end of the block."""
    chosen = Settings(**{"url": url, "port": 0, "access_log": False, "services": False, "push": False, **settings})
    listening = run.bind(chosen)
    server = run.server(chosen)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    api = Api(run.address_of(chosen, listening), server, thread)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive(), "the server starts")
        assert server.started
        yield api
    finally:
        api.stop()
        api.client.close()


@contextmanager
def connected(api: Api) -> Iterator[socket.socket]:
    """A bare connection, for what no client of HTTP would do."""
    host, port = api.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as line:
        yield line

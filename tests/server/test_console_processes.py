"""Several processes of a server show one console: whichever answers, what was done by another is there."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import httpx
import pytest

import postbus
from tests.server.test_console import OWN
from tests.waiting import until

COMMAND = str(Path(sys.executable).with_name("postbus"))


@pytest.fixture
def token(fresh_url: str) -> str:
    """A token that allows everything."""
    with postbus.connect(fresh_url, upkeep=False) as bus:
        return bus.tokens.create("visitor", scopes=["publish", "consume", "manage"]).text


@pytest.fixture
def console(fresh_url: str, token: str) -> Iterator[str]:
    """The address of a server of four processes that asks for tokens."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [COMMAND, "up", "--url", fresh_url, "--port", str(port), "--workers", "4", "--require-tokens"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("POSTBUS_")}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean) as server:
        try:
            until(lambda: is_ready(port), "the server is ready", seconds=60)
            yield f"http://127.0.0.1:{port}/console/"
        finally:
            server.terminate()
            server.wait(30)


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    except httpx.TransportError:
        return False


def test_two_hundred_looks_at_four_processes_never_disagree(console: str, fresh_url: str, token: str) -> None:
    with postbus.connect(fresh_url, upkeep=False) as bus:
        bus.create_stream("orders")
        bus.create_consumer("orders", "billing")
    cookie = httpx.post(console + "login", data={"token": token}, headers=OWN).headers["set-cookie"].partition(";")[0]
    headers = {**OWN, "cookie": cookie}
    processes = set()
    for round_ in range(20):
        # Each request has a connection of its own, so that the kernel gives it to any of the processes.
        published = httpx.post(console + "streams/orders/publish", data={"data": f'{{"n": {round_}}}'}, headers=headers)
        assert published.status_code == 303
        act = "pause" if round_ % 2 else "resume"
        changed = httpx.post(console + "streams/orders/consumers/billing", data={"act": act}, headers=headers)
        assert changed.status_code == 303
        for _ in range(5):
            messages = httpx.get(console + "streams/orders/messages", headers=headers)
            shown = unescape(messages.text)
            assert [int(each) for each in re.findall(r'\{"n": (\d+)\}', shown)] == list(range(round_, -1, -1))
            consumer = httpx.get(console + "streams/orders/consumers/billing", headers=headers).text
            state = "paused" if round_ % 2 else "active"
            assert re.search(rf'<dt>state</dt><dd><span class="badge \w+">{state}</span>', consumer)
            processes |= {each.headers["x-request-id"][:8] for each in (messages,)}
    assert len(processes) == 4

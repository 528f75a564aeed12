"""A Postgres that accepts connections and never answers does not hold up a program for minutes."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import pytest

import postbus


@pytest.fixture
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"postgresql://somebody@127.0.0.1:{listener.getsockname()[1]}/app"


def test_connect_waits_no_longer_than_it_was_told(silent: str) -> None:
    start = time.monotonic()
    with pytest.raises(postbus.Unavailable):
        postbus.connect(silent, connect_timeout=0.5)
    with pytest.raises(postbus.Unavailable):
        asyncio.run(postbus.connect_async(silent, connect_timeout=0.5))

    # libpq itself waits for at least two seconds each time.
    assert time.monotonic() - start < 60


def test_the_url_decides_if_it_names_a_time(silent: str) -> None:
    with pytest.raises(postbus.Unavailable):
        postbus.connect(f"{silent}?connect_timeout=2", connect_timeout=600)

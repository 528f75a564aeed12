"""Fixtures for pytest, which finds them by itself where Postbus is installed. They cost nothing until a test uses one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import postbus
    from postbus.testing.databases import TemporaryServer


@pytest.fixture(scope="session")
def postbus_server() -> Iterator[TemporaryServer]:
    """A Postgres for this run of the tests: the embedded one, or that of POSTBUS_TEST_URL."""
    from postbus.testing.databases import temporary_server

    with temporary_server(os.environ.get("POSTBUS_TEST_URL")) as server:
        yield server


@pytest.fixture
def postbus_url(postbus_server: TemporaryServer) -> Iterator[str]:
    """The URL of a database with Postbus and nothing else, for this test alone."""
    with postbus_server.database() as url:
        yield url


@pytest.fixture
def postbus_bus(postbus_url: str) -> Iterator[postbus.Bus]:
    """A bus of a database of its own. Nothing happens there in the background."""
    import postbus

    with postbus.connect(postbus_url, upkeep=False) as bus:
        yield bus

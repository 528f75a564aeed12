from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress

import psycopg
import pytest

import postbus
from tests import servers
from tests.processes import wait_until_gone
from tests.waiting import until

# How a server may end under its clients. Each is followed by the supervisor starting it again.
ENDINGS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "killed": signal.SIGKILL}


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
    assert own_server.embedded is not None
    pid_file = own_server.embedded.directory.cluster / "postmaster.pid"

    def end(how: str) -> None:
        with psycopg.connect(own_server.url) as connection:
            sessions = [pid for (pid,) in connection.execute("select pid from pg_stat_activity")]
        server = int(pid_file.read_text().split()[0])
        os.kill(server, ENDINGS[how])
        for pid in (server, *sessions):
            wait_until_gone(pid)

    return end


def wait_until_up(url: str) -> None:
    def answers() -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(url).close()
            return True
        return False

    until(answers, "the server takes connections")

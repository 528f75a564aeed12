"""How a Postgres of the tests may end under its clients, and come back."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import psycopg

from tests import servers
from tests.processes import wait_until_gone
from tests.waiting import until

# Each is followed by the supervisor starting it again.
ENDINGS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT, "killed": signal.SIGKILL}


def end_server(server: servers.Server, how: str) -> None:
    """End a server in one of the ways of ENDINGS, with all sessions that it has."""
    assert server.embedded is not None
    pid_file = server.embedded.directory.cluster / "postmaster.pid"
    with psycopg.connect(server.url) as connection:
        sessions = [pid for (pid,) in connection.execute("select pid from pg_stat_activity")]
    postmaster = int(pid_file.read_text().split()[0])
    os.kill(postmaster, ENDINGS[how])
    for pid in (postmaster, *sessions):
        wait_until_gone(pid)


def wait_until_up(url: str) -> None:
    def answers() -> bool:
        with suppress(psycopg.OperationalError):
            psycopg.connect(url).close()
            return True
        return False

    until(answers, "the server takes connections")

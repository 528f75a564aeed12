"""The process that owns an embedded Postgres: python -m postbus.db.embedded.supervisor '<request>'.

It answers its starter once, on standard output, then runs until the server has no users left. If it is killed the server runs
on, and the next user's supervisor takes it over.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Final

import psycopg
from psycopg import sql

from postbus.db.embedded import account, binaries
from postbus.db.embedded.cluster import ROLE, Cluster, reachable
from postbus.db.embedded.directory import Directory, State
from postbus.db.embedded.locks import FileLock
from postbus.db.embedded.request import Request
from postbus.model.errors import EmbeddedError

_POLL_SECONDS: Final = 0.2
_RETRY_SECONDS: Final = 1.0
DEFAULT_PORT: Final = 5432


class Stopped(Exception):
    """This process received a signal to end."""


def supervise(request: Request) -> None:
    """Run the server of a data directory until its last user has left."""
    directory = Directory(Path(request.path))
    lock = FileLock(directory.supervisor)
    if not lock.try_acquire(shared=False):
        _answer({"busy": True})
        return
    try:
        directory.clear_state()
        cluster = _cluster(directory, request)
        state = _start(cluster, port=request.port or DEFAULT_PORT, tcp=request.port is not None)
    except EmbeddedError as error:
        _answer({"error": error.message, "hint": error.hint})
        return
    except (OSError, psycopg.Error, subprocess.SubprocessError) as error:
        _answer({"error": f"the embedded Postgres cannot be started: {error}", "hint": f"see {directory.log}"})
        return
    told = directory.write_state(state)
    _answer({"ready": True})
    try:
        _watch(cluster, state, linger=request.linger)
    except Stopped:
        told.release()
        directory.clear_state()
        cluster.stop()


def _cluster(directory: Directory, request: Request) -> Cluster:
    who = account.choose()
    directory.admit(who)
    found = binaries.at(Path(request.home)) if request.home else binaries.find(request.major)
    cluster = Cluster(directory, reachable(found, who, directory), who)
    cluster.prepare()
    return cluster


def _start(cluster: Cluster, *, port: int, tcp: bool) -> State:
    """Start the server, or take over one that runs, which may have another port than this."""
    address = cluster.start(port=port, tcp=tcp)
    with psycopg.connect(
        host=str(address.socket), port=address.port, user=ROLE, dbname="postgres", autocommit=True
    ) as connection:
        exists = connection.execute("select from pg_database where datname = %s", (ROLE,)).fetchone()
        if exists is None:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(ROLE)))
    return State(
        supervisor=os.getpid(),
        socket=str(address.socket),
        port=address.port,
        tcp=address.tcp,
        major=cluster.binaries.major,
    )


def _watch(cluster: Cluster, state: State, *, linger: float) -> None:
    """Wait for the last user to leave, then stop the server; start it again if it dies before."""
    users = FileLock(cluster.directory.users)
    unused_since: float | None = None
    server = cluster.pid_file.server()
    while True:
        time.sleep(_POLL_SECONDS)
        try:
            unused = users.try_acquire(shared=False)
        except FileNotFoundError:
            # The data directory was deleted; the server itself would notice within a minute.
            if server is not None:
                os.kill(server, signal.SIGQUIT)
            return
        if unused:
            unused_since = unused_since or time.monotonic()
            if time.monotonic() - unused_since >= linger:
                # Newcomers wait for the lock until the server is down, then start it anew.
                cluster.directory.clear_state()
                cluster.stop()
                return
            users.release()
        else:
            unused_since = None
            server = cluster.pid_file.server()
            if server is None:
                _restart(cluster, state)


def _restart(cluster: Cluster, state: State) -> None:
    """Start a server that died under its users, as it was. What prevents it may pass: it is tried again."""
    try:
        _start(cluster, port=state.port, tcp=state.tcp)
    except (EmbeddedError, OSError, psycopg.Error) as error:
        print(f"the server died and does not start: {error}", file=sys.stderr, flush=True)
        time.sleep(_RETRY_SECONDS)


def _answer(answer: dict[str, object]) -> None:
    """Answer the starter, which waits for the end of our standard output."""
    # Nobody listens if the starter was killed. Others may use the server by now, and without us it would never stop.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(answer))
        sys.stdout.flush()
    log = os.open(os.devnull, os.O_WRONLY)
    os.dup2(log, 1)
    os.close(log)


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    supervise(Request(**json.loads(sys.argv[1])))

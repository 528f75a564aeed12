"""The Postgres that is measured: an embedded one of our own, or the one that POSTBUS_BENCH_URL names."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from benchmarks.progress import say
from benchmarks.systems.base import System
from postbus.db.embedded import EmbeddedServer
from postbus.db.embedded.locks import is_held

_STOP_SECONDS: Final = 120.0
# So much is written to the WAL of our own server before anything is measured.
_RUN_IN_MIB: Final = 400


@contextmanager
def running() -> Iterator[str]:
    """The URL of a server that runs while this does."""
    if url := os.environ.get("POSTBUS_BENCH_URL"):
        yield url
        return
    with _embedded(None) as server:
        yield server.url


@contextmanager
def over_tcp(server_url: str) -> Iterator[str]:
    """The URL of a server that can be reached without a unix socket, as Java does: the one named, or one more of our own."""
    if "POSTBUS_BENCH_URL" in os.environ:
        yield server_url
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with _embedded(port) as server:
        yield server.tcp_url


@contextmanager
def _embedded(port: int | None) -> Iterator[EmbeddedServer]:
    path = Path(tempfile.mkdtemp(prefix="postbus-bench-"))
    # Started by root, the server runs as another user, who must get in.
    path.chmod(0o755)
    server = EmbeddedServer(path, port=port, linger=0)
    try:
        _run_in(server.start().url)
        yield server
    finally:
        server.stop()
        _wait_for_stop(server)
        shutil.rmtree(path, ignore_errors=True)


def _run_in(url: str) -> None:
    """Give a new server what one has that was at work for a while: WAL files to write to again.

    One that is not there yet is made while somebody waits for his commit, for 3 to 5 ms: at a few thousand messages per second
    more than once in two seconds, until the first checkpoint.
    """
    write = sql.SQL("select pg_logical_emit_message(false, 'postbus-bench', repeat('x', 1024 * 1024))")
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(_RUN_IN_MIB):
            connection.execute(write)
        # What it no longer needs for a recovery is kept under new names, as much as was written since the one before.
        connection.execute("checkpoint")


def _wait_for_stop(server: EmbeddedServer) -> None:
    """Wait until the server is down: without its folder, its supervisor could no longer stop it."""
    end = time.monotonic() + _STOP_SECONDS
    while is_held(server.directory.supervisor) and time.monotonic() < end:
        time.sleep(0.05)


@contextmanager
def database(server_url: str, *systems: System) -> Iterator[str]:
    """The URL of a new database with these systems in it."""
    name = f"postbus_bench_{secrets.token_hex(4)}"
    _execute(server_url, sql.SQL("create database {}").format(sql.Identifier(name)))
    url = urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    try:
        for system in systems:
            system.install(url)
        yield url
    finally:
        _execute(server_url, sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def settle(url: str) -> None:
    """Do now what a large fill leaves for later, so that no round pays for it: vacuum, statistics, a checkpoint."""
    say("settling: vacuum, checkpoint")
    _execute(url, sql.SQL("vacuum analyze"))
    try:
        _execute(url, sql.SQL("checkpoint"))
    except psycopg.errors.InsufficientPrivilege:
        say("no right to checkpoint here: the first rounds may be slowed by one")


def _execute(url: str, statement: sql.SQL | sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)

"""The Postgres servers that the tests run on: the embedded ones, PostgreSQL 15 where it is found, and POSTBUS_TEST_URL."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from postbus.db import migrations
from postbus.db.embedded import EmbeddedServer
from postbus.db.embedded.locks import FileLock

FIFTEEN = Path("/usr/lib/postgresql/15")


@dataclass(frozen=True, slots=True)
class Server:
    """A running Postgres. `embedded` is None for one that we do not own and must not restart."""

    url: str
    embedded: EmbeddedServer | None


def names() -> list[str]:
    """The servers that there are here."""
    found = ["pg18", "pg16"]
    if (FIFTEEN / "bin" / "postgres").exists():
        found.append("pg15")
    if os.environ.get("POSTBUS_TEST_URL"):
        found.append("url")
    return found


@contextmanager
def running(name: str) -> Iterator[Server]:
    if name == "url":
        yield Server(os.environ["POSTBUS_TEST_URL"], None)
        return
    with data_directory() as path:
        home = FIFTEEN if name == "pg15" else None
        with EmbeddedServer(path, version=int(name[2:]), home=home, linger=0) as embedded:
            yield Server(embedded.url, embedded)


@contextmanager
def data_directory() -> Iterator[Path]:
    """A folder for an embedded server. Not pytest's: that is closed to the user which runs a server for root."""
    path = Path(tempfile.mkdtemp(prefix="postbus-test-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        # The supervisor holds its lock until the server is down.
        FileLock(path / "supervisor.lock").acquire(shared=False, seconds=60)
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def database(server_url: str, *, install: bool = True) -> Iterator[str]:
    """The URL of a new database, with Postbus installed unless told otherwise."""
    name = f"postbus_test_{secrets.token_hex(4)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    url = urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    try:
        if install:
            migrations.migrate(url)
        yield url
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

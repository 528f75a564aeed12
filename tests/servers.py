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

# What the servers of all parts of the tests need, with something to spare.
_ROOM = 8 * 2**30
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


def _fast_folder() -> Path | None:
    """In memory if there is room: a database is a thousand files, and tests make hundreds of them."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > _ROOM else None


@contextmanager
def data_directory() -> Iterator[Path]:
    """A folder for an embedded server. Not pytest's: that is closed to the user which runs a server for root."""
    path = Path(tempfile.mkdtemp(prefix="postbus-test-", dir=_fast_folder()))
    path.chmod(0o755)
    try:
        yield path
    finally:
        # The supervisor holds its lock until the server is down.
        FileLock(path / "supervisor.lock").acquire(shared=False, seconds=60)
        shutil.rmtree(path, ignore_errors=True)


# By server: a database with Postbus installed, which is copied in a fraction of the time that installing takes.
_templates: dict[str, str] = {}


@contextmanager
def database(server_url: str, *, install: bool = True) -> Iterator[str]:
    """The URL of a new database, with Postbus installed unless told otherwise."""
    template = None
    if install and server_url != os.environ.get("POSTBUS_TEST_URL"):
        if server_url not in _templates:
            _templates[server_url] = _create(server_url, None)
            migrations.migrate(url_of(server_url, _templates[server_url]))
            _publish_all_tables(url_of(server_url, _templates[server_url]))
        template = _templates[server_url]
    name = _create(server_url, template)
    try:
        if install and template is None:
            migrations.migrate(url_of(server_url, name))
        yield url_of(server_url, name)
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def _publish_all_tables(url: str) -> None:
    """On PostgreSQL 16, databases have what one has that somebody replicates as a whole.

    A table without a replica identity then refuses updates and deletes; so all tests of SQL run under such a publication, too.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.info.server_version // 10_000 == 16:
            connection.execute("create publication somebodys for all tables")


def _create(server_url: str, template: str | None) -> str:
    name = f"postbus_test_{secrets.token_hex(4)}"
    statement = sql.SQL("create database {} template {} strategy file_copy")
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template or "template1")))
    return name


def url_of(server_url: str, name: str) -> str:
    return urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))

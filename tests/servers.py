"""The Postgres servers that the tests run on: the embedded ones, PostgreSQL 15 where it is found, and POSTBUS_TEST_URL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from postbus.db.databases import url_of
from postbus.db.embedded import EmbeddedServer
from postbus.testing.databases import TemporaryServer, data_directory

__all__ = ["FIFTEEN", "Server", "data_directory", "database", "names", "running", "url_of"]

FIFTEEN = Path("/usr/lib/postgresql/15")


@dataclass(frozen=True, slots=True)
class Server:
    """A running Postgres. `embedded` is None for one that we do not own and must not restart."""

    url: str
    embedded: EmbeddedServer | None


def names() -> list[str]:
    """The servers that tests run on: the newest and the oldest that there are here, or all with POSTBUS_TEST_EVERY_SERVER."""
    found = ["pg18", "pg16"]
    if (FIFTEEN / "bin" / "postgres").exists():
        found = [*found, "pg15"] if os.environ.get("POSTBUS_TEST_EVERY_SERVER") else ["pg18", "pg15"]
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


# The databases of each server, of which one has Postbus and is copied.
_servers: dict[str, TemporaryServer] = {}


@contextmanager
def database(server_url: str, *, install: bool = True) -> Iterator[str]:
    """The URL of a new database, with Postbus installed unless told otherwise."""
    with _servers.setdefault(server_url, TemporaryServer(server_url, prepare=_publish_all_tables)).database(
        install=install
    ) as url:
        yield url


def _publish_all_tables(url: str) -> None:
    """On all but the newest server, databases have what one has that somebody replicates as a whole.

    A table without a replica identity then refuses updates and deletes; so all tests of SQL run under such a publication, too.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.info.server_version // 10_000 < 18:
            connection.execute("create publication somebodys for all tables")

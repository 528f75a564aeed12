"""A Postgres for tests: a server in a temporary folder, and in it a database for each test."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from postbus.db import migrations
from postbus.db.databases import create_database, drop_database, url_of
from postbus.db.embedded import EmbeddedServer
from postbus.db.embedded.binaries import DEFAULT_VERSION
from postbus.db.embedded.locks import FileLock

# What a server and some databases take, with something to spare.
_ROOM: Final = 8 * 2**30
_STOP_SECONDS: Final = 60


class TemporaryServer:
    """A server whose databases are empty but for Postbus; get one from `temporary_server`.

    Args:
        url: The URL of one of its databases, for a role that may create others.
        prepare: Called once, with the URL of the database of which all others are copies: for what they should have besides.
    """

    def __init__(self, url: str, *, prepare: Callable[[str], None] | None = None) -> None:
        self.url = url
        self._prepare = prepare
        self._template: str | None = None

    @contextmanager
    def database(self, *, install: bool = True) -> Iterator[str]:
        """The URL of a new database, which is dropped at the end.

        Args:
            install: Install Postbus there: the first time takes a second, and later databases are copies.
        """
        template = self._prepared() if install else "template1"
        name = _new_name()
        url = create_database(self.url, name, template)
        try:
            yield url
        finally:
            drop_database(self.url, name)

    def close(self) -> None:
        """Drop the template, where the server stays."""
        if self._template is not None:
            drop_database(self.url, self._template)
            self._template = None

    def _prepared(self) -> str:
        if self._template is None:
            name = _new_name()
            create_database(self.url, name)
            migrations.migrate(url_of(self.url, name))
            if self._prepare is not None:
                self._prepare(url_of(self.url, name))
            self._template = name
        return self._template


@contextmanager
def temporary_server(
    url: str | None = None, *, version: int = DEFAULT_VERSION, home: Path | None = None
) -> Iterator[TemporaryServer]:
    """A Postgres that is gone at the end, or databases of a Postgres of yours.

    Args:
        url: A Postgres of yours, by a role that may create databases. None starts the embedded one in a temporary folder.
        version: The major version of the embedded Postgres: 18, or 16.
        home: The folder of other Postgres programs to run, such as /usr/lib/postgresql/15.
    """
    if url is not None:
        server = TemporaryServer(url)
        try:
            yield server
        finally:
            server.close()
        return
    with data_directory() as path, EmbeddedServer(path, version=version, home=home, linger=0) as embedded:
        yield TemporaryServer(embedded.url)


@contextmanager
def data_directory() -> Iterator[Path]:
    """A folder for an embedded server, gone at the end.

    It is in memory if there is room: a database is a thousand files. Other users may enter it, since a server that root starts
    runs as one.
    """
    path = Path(tempfile.mkdtemp(prefix="postbus-test-", dir=_fast_folder()))
    path.chmod(0o755)
    try:
        yield path
    finally:
        # The supervisor holds its lock until the server is down.
        FileLock(path / "supervisor.lock").acquire(shared=False, seconds=_STOP_SECONDS)
        shutil.rmtree(path, ignore_errors=True)


def _fast_folder() -> Path | None:
    memory = Path("/dev/shm")  # noqa: S108
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > _ROOM else None


def _new_name() -> str:
    return f"postbus_test_{secrets.token_hex(4)}"

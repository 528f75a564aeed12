# Generated from postbus/client/_async/connect.py by `make generate`; edit that file.

"""Connects to a bus: in a Postgres, in the embedded one, or behind a server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from postbus.client._sync.bus import Bus
from postbus.codec.parameters import checked_headers
from postbus.db import url as urls
from postbus.http.request import TOKEN_VARIABLE
from postbus.http.url import is_http
from postbus.maintenance._sync.background import BackgroundUpkeep
from postbus.model.errors import Error, InvalidInput


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    data_dir: Path | str | None = None,
    pool_size: int = 10,
    connect_timeout: float = 30,
    upkeep: bool = True,
    headers: Mapping[str, str] | None = None,
) -> Bus:
    """Connect to Postbus: in a Postgres, or behind a server.

    Args:
        url: `postgresql://…`, or `http://…` of a server. None takes the environment variable POSTBUS_URL and, without it, the
            embedded Postgres, which is started if it does not run.
        token: For a server that requires one. None takes the environment variable POSTBUS_TOKEN, if it is set.
        data_dir: The directory of the embedded Postgres. None takes POSTBUS_DATA_DIR or `~/.local/share/postbus`.
        pool_size: The largest number of connections.
        connect_timeout: How many seconds to wait for a connection before raising `Unavailable`.
        upkeep: Sweep and maintain in the background while the bus is open: retention, scheduled messages, expired leases. Of all
            programs that are connected, one at a time does it, if its role is the owner of Postbus. A server does it by itself.
        headers: Headers of every message that this bus publishes, such as the name of your program. A message's own headers win.

    Raises:
        Unavailable: Postgres or the server cannot be reached.
        InvalidInput: The URL is not valid, a header is not a string, or there is a token but no server.
        MigrationDue: Postbus is not installed there, or its version differs; the hint says what to do.
        EmbeddedError: The embedded Postgres cannot be started.
    """
    own_headers = checked_headers(headers)
    named = url or (None if data_dir is not None else os.environ.get("POSTBUS_URL"))
    if named and is_http(named):
        return _connect_to_server(named, token, pool_size, connect_timeout, own_headers)
    chosen = urls.choose(named) if named else None
    if token is not None:
        raise InvalidInput("a token only works with a server, not with Postgres", "give the URL of a server: http://…")
    return _connect_to_postgres(chosen, data_dir, pool_size, connect_timeout, own_headers, upkeep=upkeep)


def _connect_to_postgres(
    chosen: str | None,
    data_dir: Path | str | None,
    pool_size: int,
    connect_timeout: float,
    headers: Mapping[str, str] | None,
    *,
    upkeep: bool,
) -> Bus:
    # The driver takes as long to import as all the rest, and a server needs none.
    from postbus.db import migrations
    from postbus.db._sync.database import Database, in_thread
    from postbus.db.embedded import EmbeddedServer
    from postbus.transport._sync.postgres import PostgresTransport

    server = None
    if chosen is None:
        server = EmbeddedServer(data_dir)
        in_thread(server.start)
        chosen = server.url
        try:
            in_thread(migrations.migrate, chosen)
        except BaseException:
            server.stop()
            raise
    database = Database(chosen, pool_size=pool_size, connect_timeout=connect_timeout)
    try:
        database.open()
    except BaseException:
        if server is not None:
            server.stop()
        raise
    transport = PostgresTransport(database, server=server)
    bus = Bus(transport, headers=headers)
    try:
        bus.check()
    except BaseException:
        bus.close()
        raise
    if upkeep:
        bus._background = BackgroundUpkeep(transport)
    return bus


def _connect_to_server(
    url: str, token: str | None, pool_size: int, connect_timeout: float, headers: Mapping[str, str] | None
) -> Bus:
    try:
        from postbus.http._sync.client import HttpClient
        from postbus.transport._sync.http import HttpTransport
    except ImportError as error:
        raise Error("the client of a server is not installed", "run: pip install 'postbus[http]'") from error
    token = token or os.environ.get(TOKEN_VARIABLE) or None
    client = HttpClient(url, token=token, pool_size=pool_size, connect_timeout=connect_timeout)
    bus = Bus(HttpTransport(client), headers=headers)
    try:
        bus.check()
    except BaseException:
        bus.close()
        raise
    return bus

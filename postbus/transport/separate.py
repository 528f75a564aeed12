"""A transport with one connection that nothing else uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postbus.http.url import is_http

if TYPE_CHECKING:
    from postbus.transport._sync.base import Transport


def open_separately(url: str, *, token: str | None, connect_timeout: float) -> Transport:
    """Open a separate connection, for a thread that must never wait for one of the pool.

    Raises:
        Unavailable: There is no connection.
    """
    if is_http(url):
        from postbus.http._sync.client import HttpClient
        from postbus.transport._sync.http import HttpTransport

        return HttpTransport(HttpClient(url, token=token, connect_timeout=connect_timeout))
    from postbus.db._sync.database import Database
    from postbus.transport._sync.postgres import PostgresTransport

    database = Database(url, pool_size=1, connect_timeout=connect_timeout)
    database.open()
    return PostgresTransport(database)

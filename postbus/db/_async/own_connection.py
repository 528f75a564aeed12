"""Finds the driver's connection in what a user gives as their own."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from postbus.db.own_connections import AsyncOwnConnection, is_async, is_session, is_sqlalchemy, refused

_WANTS_ASYNC: Final = psycopg.AsyncConnection.__name__.startswith("Async")


async def driver_connection(given: AsyncOwnConnection) -> psycopg.AsyncConnection[Any]:
    """The driver's connection, in a transaction that its user ends.

    Raises:
        TypeError: It is not one of psycopg, nor of SQLAlchemy over psycopg.
    """
    if isinstance(given, psycopg.AsyncConnection):
        return given
    if not is_sqlalchemy(given) or is_async(given) != _WANTS_ASYNC:
        raise refused(given, wants_async=_WANTS_ASYNC)
    return await _of_sqlalchemy(given)


async def _of_sqlalchemy(given: Any) -> psycopg.AsyncConnection[Any]:
    connection = await given.connection() if is_session(given) else given
    found = getattr(connection, "sync_connection", connection).connection.driver_connection
    if not isinstance(found, psycopg.AsyncConnection):
        raise refused(found, wants_async=_WANTS_ASYNC)
    if not connection.in_transaction():
        # SQLAlchemy commits only what it knows to have begun.
        await connection.begin()
    return found

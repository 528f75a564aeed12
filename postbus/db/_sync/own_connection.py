# Generated from postbus/db/_async/own_connection.py by `make generate`; edit that file.

"""Finds the driver's connection in what a user gives as their own."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from postbus.db.own_connections import OwnConnection, is_async, is_session, is_sqlalchemy, refused

_WANTS_ASYNC: Final = psycopg.Connection.__name__.startswith("Async")


def driver_connection(given: OwnConnection) -> psycopg.Connection[Any]:
    """The driver's connection, in a transaction that its user ends.

    Raises:
        TypeError: It is not one of psycopg, nor of SQLAlchemy over psycopg.
    """
    if isinstance(given, psycopg.Connection):
        return given
    if not is_sqlalchemy(given) or is_async(given) != _WANTS_ASYNC:
        raise refused(given, wants_async=_WANTS_ASYNC)
    return _of_sqlalchemy(given)


def _of_sqlalchemy(given: Any) -> psycopg.Connection[Any]:
    connection = given.connection() if is_session(given) else given
    found = getattr(connection, "sync_connection", connection).connection.driver_connection
    if not isinstance(found, psycopg.Connection):
        raise refused(found, wants_async=_WANTS_ASYNC)
    if not connection.in_transaction():
        # SQLAlchemy commits only what it knows to have begun.
        connection.begin()
    return found

# Generated from postbus/db/_async/transactions.py by `make generate`; edit that file.

"""Connections for a worker's handlers, each with one transaction at a time.

Not those of the pool, whose sessions have settings of their own: a handler should find tables by the search_path that it knows.
"""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from postbus.db._sync.database import Connection
from postbus.db.errors import shown_cause, translate


class Transactions:
    """Opens connections as they are needed, and keeps them.

    Args:
        url: The database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: list[Connection] = []

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A connection in a transaction, which commits at the end and rolls back on an exception.

        Raises:
            Unavailable: There is no connection.
            ConnectionLost: The connection broke: the transaction may or may not have been committed.
        """
        connection = self._take()
        is_through = False
        try:
            with connection.transaction():
                yield connection
                is_through = True
        except psycopg.Error as error:
            if is_through:
                raise translate(error) from shown_cause(error)
            raise
        finally:
            self._put(connection)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if _is_alive(connection):
                return connection
            connection.close()
        try:
            connection = psycopg.Connection.connect(self._url, autocommit=True, client_encoding="UTF8")
            # Acks require this isolation level, whatever the database's default.
            connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        except psycopg.Error as error:
            raise translate(error, under_way=False) from error
        return connection

    def _put(self, connection: Connection) -> None:
        if connection.closed or connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                connection.close()
        else:
            self._idle.append(connection)


def abort_connection(connection: Connection) -> None:
    """Shut down the socket of a connection, from any thread. Its transaction rolls back, and its next use raises an error."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=_copy(connection)) as line:
        line.shutdown(socket.SHUT_RDWR)


def _copy(connection: Connection) -> int:
    return os.dup(connection.fileno())


def _is_alive(connection: Connection) -> bool:
    """Whether an idle connection is still alive. Nothing should arrive on it, so a readable one is suspect."""
    if connection.closed:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)

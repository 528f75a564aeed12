"""A connection for one transaction, as the processes of Spark use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from postbus.db._sync.connection import PreparedConnection
from postbus.db._sync.database import configure
from postbus.db.errors import refused_row, shown_cause, snapshot_gone, translate


class Session:
    """A connection inside a READ COMMITTED transaction, which `transaction` commits."""

    def __init__(self, connection: PreparedConnection) -> None:
        self._connection = connection

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement."""
        return self._connection.fetch(statement, parameters)

    def value(self, statement: str, parameters: Sequence[Any] = ()) -> Any:
        """The single value that a statement returns."""
        ((value,),) = self.rows(statement, parameters)
        return value

    def copy_rows(self, table: str, columns: Sequence[str], rows: bytes) -> int:
        """Write rows, in the binary format of COPY, to a table of Postbus. Returns how many there were.

        Raises:
            InvalidInput: The data of a row does not have the type of the stream.
        """
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        statement = sql.SQL("copy {} ({}) from stdin (format binary)").format(
            sql.Identifier("postbus_data", table), names
        )
        try:
            with self._connection.cursor() as cursor:
                with cursor.copy(statement) as copy:
                    copy.write(rows)
                return cursor.rowcount
        except psycopg.DataError as error:
            raise refused_row(error) from error


class KeptSession(Session):
    """A connection that is kept. Outside `transaction`, each statement is a transaction of its own."""

    @classmethod
    def open(cls, url: str) -> KeptSession:
        """Connect.

        Raises:
            Unavailable: The database cannot be reached.
        """
        try:
            connection = PreparedConnection.connect(url, autocommit=True, client_encoding="UTF8", connect_timeout=15)
            configure(connection)
        except psycopg.Error as error:
            raise translate(error, under_way=False) from error
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return cls(connection)

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return super().rows(statement, parameters)
        except psycopg.Error as error:
            raise translate(error) from shown_cause(error)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit at the end, or roll back on an exception."""
        try:
            with self._connection.transaction():
                yield
        except psycopg.Error as error:
            raise translate(error) from shown_cause(error)

    def close(self) -> None:
        self._connection.close()


@contextmanager
def transaction(url: str, *, snapshot: str | None = None) -> Iterator[Session]:
    """Connect, run a transaction, commit it, or roll it back on an exception.

    Args:
        url: The database.
        snapshot: What another connection has exported, to see the database as it was then.

    Raises:
        Unavailable: No connection holds that snapshot any more.
        postbus.Error: Any other error of Postgres or the driver.
    """
    try:
        connection = PreparedConnection.connect(url, autocommit=True, client_encoding="UTF8", connect_timeout=30)
    except psycopg.Error as error:
        raise translate(error, under_way=False) from error
    # Few statements, and a pooler in between might lose prepared ones.
    connection.keeps_statements = False
    connection.isolation_level = (
        psycopg.IsolationLevel.READ_COMMITTED if snapshot is None else psycopg.IsolationLevel.REPEATABLE_READ
    )
    try:
        with connection, connection.transaction():
            if snapshot is not None:
                _go_to(connection, snapshot)
            yield Session(connection)
    except psycopg.Error as error:
        raise translate(error) from shown_cause(error)


def _go_to(connection: PreparedConnection, snapshot: str) -> None:
    try:
        connection.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(snapshot)))
    except (psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject) as error:
        raise snapshot_gone() from error

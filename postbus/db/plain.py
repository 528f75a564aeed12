"""A plain connection, for statements about other tables than those of Postbus. Its errors are those of Postbus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.rows import dict_row

from postbus.db.errors import shown_cause, translate

Statement = Any
Parameters = Sequence[Any] | Mapping[str, Any]


class PlainConnection:
    """A connection in autocommit. Each method raises `postbus.Error`."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def run(self, statement: Statement) -> None:
        try:
            self._connection.execute(statement)
        except psycopg.Error as error:
            raise translate(error) from shown_cause(error)

    def run_alone(self, statement: Statement) -> None:
        """Run what may have a text of a user in it: exactly one statement, or none."""
        try:
            self._connection.execute(statement, prepare=True)
        except psycopg.Error as error:
            raise translate(error) from shown_cause(error)

    def rows(self, statement: Statement, parameters: Parameters | None = None) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, parameters).fetchall()
        except psycopg.Error as error:
            raise translate(error) from shown_cause(error)

    def dicts(self, statement: Statement, parameters: Parameters | None = None) -> list[dict[str, Any]]:
        """Rows by the names of their columns."""
        try:
            with self._connection.cursor(row_factory=dict_row) as cursor:
                return cursor.execute(statement, parameters).fetchall()
        except psycopg.Error as error:
            raise translate(error) from shown_cause(error)

    def columns(self, statement: Statement) -> list[tuple[str, int]]:
        """The columns of a statement's rows, and the OIDs of their types."""
        try:
            described = self._connection.execute(statement).description or []
        except psycopg.Error as error:
            raise translate(error) from shown_cause(error)
        return [(column.name, column.type_code) for column in described]

    def texts(
        self, statement: Statement, parameters: Parameters | None = None
    ) -> tuple[list[int], list[list[bytes | None]]]:
        """The types of a statement's columns, and its rows as the text that Postgres sent, not decoded."""
        try:
            result = self._connection.execute(statement, parameters).pgresult
        except psycopg.Error as error:
            raise translate(error) from shown_cause(error)
        assert result is not None  # noqa: S101
        columns = range(result.nfields)
        rows = [[_bytes(result.get_value(row, column)) for column in columns] for row in range(result.ntuples)]
        return [result.ftype(column) for column in columns], rows

    def rollback(self) -> None:
        self._connection.rollback()


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


@contextmanager
def connect(url: str, *, connect_timeout: int = 30) -> Iterator[PlainConnection]:
    """Connect, and close at the end.

    Raises:
        Unavailable: The database cannot be reached.
    """
    try:
        connection = psycopg.connect(url, autocommit=True, client_encoding="UTF8", connect_timeout=connect_timeout)
    except psycopg.Error as error:
        raise translate(error, under_way=False) from error
    with connection:
        yield PlainConnection(connection)

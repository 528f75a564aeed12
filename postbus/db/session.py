"""One connection of its own, for work that opens, does one thing in a transaction and closes: what Spark's processes do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import sql

from postbus.db import log_rows
from postbus.db._sync.connection import PreparedConnection
from postbus.db.errors import refused_row, snapshot_gone, translate

SPARK_STATE: Final = "select s.* from postbus_data.spark_state($1) as s"
SPARK_START: Final = "select postbus_data.spark_start($1, $2, $3, $4)"
SPARK_END: Final = "select postbus_data.spark_end($1, $2, $3, $4, $5)"
SPARK_SEGMENTS: Final = "select g.* from postbus_data.spark_segments($1, $2, $3) as g"
SPARK_LOST: Final = "select l.* from postbus_data.spark_lost($1, $2) as l"
SPARK_COMMIT: Final = "select postbus_data.spark_commit($1, $2, $3)"
SPARK_STAGE: Final = (
    "select postbus_data.spark_stage($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text[]::timestamptz[])"
)
SPARK_STAGE_ROWS: Final = "select postbus_data.spark_stage_rows($1, $2, $3, $4, $5, $6, $7, $8, $9)"
SPARK_BEGIN_BATCH: Final = "select postbus_data.spark_begin_batch($1, $2, $3, $4, $5, $6)"
SPARK_STAGED: Final = "select s.* from postbus_data.spark_staged($1::text[]::uuid[]) as s"
SPARK_ENTER: Final = "select e.layout from postbus_data.enter($1, null) as e"
# Rows that a function returned would be copied several times.
SPARK_PLACE_ROWS: Final = """
select p.*, s.encoded
from postbus_data.spark_place_rows($1, $2, $3) as p
left join postbus_data.spark_staging as s on s.attempt = $2 and s.chunk = $3
"""
SPARK_PUBLISH_CHUNK: Final = """
select postbus_data.spark_publish_chunk($1, s) from postbus_data.spark_staging as s where s.attempt = $2 and s.chunk = $3
"""
SPARK_END_BATCH: Final = "select postbus_data.spark_end_batch($1, $2, $3, $4::text[]::uuid[], $5, $6)"
SPARK_PUBLISH: Final = "select postbus_data.spark_publish($1, $2, $3, $4, $5, $6::text[]::uuid[], $7)"
SPARK_DISCARD: Final = "select postbus_data.spark_discard($1, $2, $3::text[]::uuid[])"
SEQ_SINCE: Final = "select postbus_data.seq_since(postbus_data.stream_id($1), $2::timestamptz + interval '1 second')"
HISTORY_BOUNDS: Final = "select b.* from postbus_data.history_bounds($1) as b"
PATTERN_REGEX: Final = "select postbus_data.pattern_regex($1)"


class Session:
    """A connection inside a READ COMMITTED transaction, which `transaction` commits."""

    def __init__(self, connection: PreparedConnection) -> None:
        self._connection = connection

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one of the statements of this module."""
        return self._connection.fetch(statement, parameters)

    def value(self, statement: str, parameters: Sequence[Any] = ()) -> Any:
        """The one value that a statement yields."""
        ((value,),) = self.rows(statement, parameters)
        return value

    def copy_rows(self, stream_id: int, segment: int, rows: bytes) -> int:
        """Write rows, as `log_rows` makes them, to a segment; how many there were.

        Raises:
            InvalidInput: The data of one is not what the stream holds.
        """
        table = sql.Identifier("postbus_data", f"log_{stream_id:d}_{segment:d}")
        columns = sql.SQL(", ").join(map(sql.Identifier, log_rows.COLUMNS))
        statement = sql.SQL("copy {} ({}) from stdin (format binary)").format(table, columns)
        try:
            with self._connection.cursor() as cursor:
                with cursor.copy(statement) as copy:
                    copy.write(rows)
                return cursor.rowcount
        except psycopg.DataError as error:
            raise refused_row(error) from error


@contextmanager
def transaction(url: str, *, snapshot: str | None = None) -> Iterator[Session]:
    """Connect, run a transaction, commit it, or roll it back on an exception.

    Args:
        url: The database.
        snapshot: What another connection has exported, to see the database as it was then.

    Raises:
        Unavailable: Nobody holds that snapshot any more.
        postbus.Error: Whatever else Postgres or the driver raised, translated.
    """
    try:
        connection = PreparedConnection.connect(url, autocommit=True, client_encoding="UTF8", connect_timeout=30)
    except psycopg.Error as error:
        raise translate(error, under_way=False) from error
    # Few statements, and perhaps a pooler on the way that loses prepared ones.
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
        raise translate(error) from error


def _go_to(connection: PreparedConnection, snapshot: str) -> None:
    try:
        connection.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(snapshot)))
    except (psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject) as error:
        raise snapshot_gone() from error

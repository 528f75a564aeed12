"""Spark on this machine, and its own JDBC source beside ours. Both go over TCP."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import psycopg
from psycopg import sql

from benchmarks.messages import SQL_DATA, SQL_KEY

_JARS: Final = (os.environ.get("POSTBUS_BENCH_JDBC", ""), "/usr/share/java/postgresql.jar")
CORES: Final = 2
# What a message of a stream is stored as.
_TABLE: Final = """
create table jdbc_target (
    seq bigint generated always as identity,
    published_at timestamptz not null default clock_timestamp(),
    partition integer not null default 0,
    key text collate "C",
    data json not null,
    headers jsonb,
    expires_at timestamptz,
    primary key (partition, seq)
)
"""


@contextmanager
def session(*, jdbc: bool = False, settings: dict[str, str] | None = None) -> Iterator[Any]:
    """A Spark with two cores, and Postgres's JDBC driver if asked for.

    Raises:
        RuntimeError: The driver is not there; the message says how to get it.
    """
    import postbus.spark

    wanted = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **(settings or {}),
    }
    if jdbc:
        wanted["spark.jars"] = _jar()
    spark = postbus.spark.session(master=f"local[{CORES}]", name="benchmarks", settings=wanted)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def _jar() -> str:
    for path in _JARS:
        if path and Path(path).is_file():
            return path
    raise RuntimeError(
        "the JDBC driver is missing: on Debian apt-get install libpostgresql-jdbc-java, or name a jar by POSTBUS_BENCH_JDBC"
    )


def numbered(spark: Any, count: int) -> Any:
    """Messages that Spark makes itself: the same as those of benchmarks.messages."""
    columns = (f"{SQL_KEY.replace('i,', 'id,')} as key", f"{SQL_DATA.replace('|| i ||', '|| id ||')} as data")
    return spark.range(0, count, 1, CORES).selectExpr(*columns)


def jdbc_options(url: str) -> dict[str, str]:
    """What Spark's JDBC source needs for a URL of libpq."""
    parts = urlsplit(url)
    return {
        # Without it, Postgres refuses text for a column of JSON.
        "url": f"jdbc:postgresql://{parts.hostname}:{parts.port or 5432}{parts.path}?stringtype=unspecified",
        "user": unquote(parts.username or "postgres"),
        "password": unquote(parts.password or ""),
        "driver": "org.postgresql.Driver",
    }


def log_of(url: str, stream: str) -> str:
    """The table that a stream's messages lie in, for JDBC to read them from.

    Raises:
        RuntimeError: There are several.
    """
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select g.stream_id, g.number, g.last_seq, g.sealed_at from postbus_data.segment as g"
            " join postbus_data.stream as s on s.id = g.stream_id where s.name = %s",
            (stream,),
        ).fetchall()
    if len(rows) != 1:
        raise RuntimeError(f"stream {stream} has {len(rows)} segments, and JDBC reads one table")
    return f"postbus_data.log_{rows[0][0]}_{rows[0][1]}"


def count_rows(url: str, table: str) -> int:
    schema, _, name = table.rpartition(".")
    with psycopg.connect(url) as connection:
        statement = sql.SQL("select count(*) from {}").format(sql.Identifier(*filter(None, (schema, name))))
        (row,) = connection.execute(statement).fetchall()
    return int(row[0])


def renew_target(url: str) -> str:
    """A new, empty table of the shape of a stream's log."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop table if exists jdbc_target")
        connection.execute(_TABLE)
    return "jdbc_target"

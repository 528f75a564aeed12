"""A database with roles that have rights on one of its streams, and ways to look at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql

RIGHTS: Final = ("publish", "consume", "read")


@dataclass(frozen=True, slots=True)
class Place:
    """A database in which streams "mine" and "other" use everything, and roles that have rights on "mine" only.

    Attributes:
        url: The database, as its owner.
        stream_id: The id of "mine".
        roles: The role that has each right, and under "none" one that has the right to publish to a third stream.
    """

    url: str
    stream_id: int
    roles: dict[str, str]

    def connect(self, right: str) -> psycopg.Connection[Any]:
        """A session of the role with that right, which cannot become anybody else."""
        return psycopg.connect(self.url, user=self.roles[right], autocommit=True)


def execute(connection: psycopg.Connection[Any], statement: str | sql.Composed, *values: Any) -> list[tuple[Any, ...]]:
    cursor = connection.execute(statement, values or None)
    return cursor.fetchall() if cursor.description else []


def contents(owner: psycopg.Connection[Any]) -> dict[str, Any]:
    """Everything that is stored of stream "other", and how many numbers it has given out."""
    found: dict[str, Any] = {}
    ((other,),) = execute(owner, "select id from postbus.describe_stream('other')")
    for (table,) in execute(
        owner,
        "select oid::regclass::text from pg_class where relnamespace = 'postbus_data'::regnamespace and relkind = 'r' order by 1",
    ):
        if "caller_key" not in table:
            found[table] = sorted(map(repr, execute(owner, f"select t.* from {table} as t")))
    found["seq"] = execute(owner, f"select last_value from postbus_data.seq_{other}")
    return found


def of_consumers(owner: psycopg.Connection[Any], stream: str) -> dict[str, list[tuple[Any, ...]]]:
    """What is stored of the consumers of a stream, by table."""
    tables = execute(
        owner,
        """
        select a.attrelid::regclass::text
        from pg_attribute as a
        join pg_class as c on c.oid = a.attrelid
        where c.relnamespace = 'postbus_data'::regnamespace and c.relkind = 'r' and a.attname = 'consumer_id'
        """,
    )
    return {
        table: execute(
            owner,
            f"""
            select t.*
            from {table} as t
            join postbus_data.consumer as c on c.id = t.consumer_id
            where c.stream_name = %s
            order by t::text
            """,
            stream,
        )
        for (table,) in tables
    }

"""Rebuilds tables from messages alone, and compares them with what they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from postbus.codec.exact_json import encode_exactly


@dataclass(frozen=True, slots=True)
class Message:
    """A message, decoded exactly."""

    key: str
    data: Any


def rebuilt(messages: Iterable[Message]) -> dict[str, dict[str, dict[str, Any]]]:
    """The rows of each table by the keys of their messages, as the messages leave them in order of their seqs."""
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for message in messages:
        data = message.data
        metadata = data["metadata"]
        rows = tables.setdefault(metadata["table_name"], {})
        if data["action"] == "truncate":
            rows.clear()
        elif data["action"] == "delete":
            rows.pop(message.key, None)
        else:
            before = rows.get(message.key, {})
            kept = {name: before[name] for name in metadata.get("unchanged_toast", ()) if name in before}
            rows[message.key] = {**data["record"], **kept}
    return tables


def differences(connection: psycopg.Connection[Any], table: str, rows: Iterable[dict[str, Any]]) -> list[Any]:
    """Rows that only one of the two has, as Postgres writes them."""
    name = sql.Identifier(table)
    statement = sql.SQL(
        """
        with made as (
            select json_populate_record(null::{table}, r.value)::text as row from json_array_elements(%s::json) as r
        )
        (select 'only in the stream', row from made except all select 'only in the stream', t::text from {table} as t)
        union all
        (select 'only in the table', t::text from {table} as t except all select 'only in the table', row from made)
        limit 5
        """
    ).format(table=name)
    return connection.execute(statement, (encode_exactly(list(rows)).decode(),)).fetchall()

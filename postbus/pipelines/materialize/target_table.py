"""A table of any Postgres that is kept as a stream says; Postbus need not be installed there.

Beside it lies `postbus_materialized`, with a row for each such table of the schema: of which stream it is, and how far it has
come. Changes are staged by Spark's tasks, and merged in the transaction that moves the position.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from postbus.db import composition as sql
from postbus.db.session import Session
from postbus.model.errors import Conflict, InvalidInput

_TYPES: Final = {
    "STRING": "text",
    "BOOLEAN": "boolean",
    "INT": "integer",
    "BIGINT": "bigint",
    "DOUBLE": "double precision",
    "TIMESTAMP": "timestamptz",
    "DATE": "date",
    "JSON": "jsonb",
}
_DECIMAL: Final = re.compile(r"DECIMAL(\(\d+(?:,\d+)?\))")
_REGISTER: Final = """
create table if not exists {register} (
    table_name text primary key,
    source text not null,
    position_seq bigint not null,
    fields jsonb not null,
    is_history boolean not null,
    stage text not null,
    moved_at timestamptz not null default clock_timestamp()
)
"""
_STAGE: Final = """
create unlogged table {stage} (
    attempt uuid not null,
    seq bigint not null,
    -- Null: all keys.
    key text collate "C",
    published_at timestamptz not null,
    row jsonb,
    -- Columns that stay as they are.
    kept jsonb
)
"""
Fields = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Place:
    """A table by its schema and name, and the one where a run stages its changes."""

    schema: str
    table: str
    stage: str

    @classmethod
    def of(cls, written: str, stage: str) -> Place:
        """From what a user wrote: a name, or schema.name.

        Raises:
            InvalidInput: It is neither.
        """
        schema, dot, table = written.rpartition(".")
        if not table or (dot and not schema) or "." in schema:
            raise InvalidInput(f'"{written}" does not name a table', "write name, or schema.name")
        return cls(schema or "public", table, stage)

    def statement(self, text: str, **parts: sql.Composable) -> str:
        """A statement with the names of these tables in it."""
        names = {
            "table": sql.Identifier(self.schema, self.table),
            "stage": sql.Identifier(self.schema, self.stage),
            "register": sql.Identifier(self.schema, "postbus_materialized"),
        }
        return sql.SQL(text).format(**names, **parts).as_string(None)


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a table has come, and the fields that it has."""

    position_seq: int
    fields: tuple[tuple[str, str], ...]


def open_table(
    database: Session, place: Place, source: str, fields: Fields, start_seq: int, *, is_history: bool, again: bool
) -> Standing:
    """Begin to keep a table, or go on; the staging table of an earlier run goes.

    Raises:
        Conflict: The table is not ours, is of another stream, or of the other kind.
    """
    database.rows(place.statement(_REGISTER))
    known = database.rows(
        place.statement(
            "select r.source, r.position_seq, r.fields, r.is_history, r.stage from {register} as r "
            "where r.table_name = $1 for update"
        ),
        (place.table,),
    )
    if known:
        standing = _go_on(database, place, known[0], source, start_seq, is_history, again)
    else:
        _create(database, place, fields, is_history)
        standing = Standing(start_seq, tuple(fields))
        database.rows(
            place.statement(
                "insert into {register} (table_name, source, position_seq, fields, is_history, stage) "
                "values ($1, $2, $3, $4::jsonb, $5, $6)"
            ),
            (place.table, source, start_seq, json.dumps(list(fields)), is_history, place.stage),
        )
    database.rows(place.statement(_STAGE))
    return standing


def _go_on(
    database: Session, place: Place, known: Sequence[Any], source: str, start_seq: int, is_history: bool, again: bool
) -> Standing:
    its_source, position, fields, was_history, stage = known
    if was_history != is_history:
        kind = "the history" if was_history else "the present rows"
        raise Conflict(f"table {place.table} holds {kind} of its stream", "choose another table, or drop this one")
    if its_source != source and not again:
        raise Conflict(
            f"table {place.table} was made of another stream, or of another history of this one",
            "--again empties it and begins anew",
        )
    if again:
        position = start_seq
        database.rows(place.statement("truncate {table}"))
    database.rows(Place(place.schema, place.table, stage).statement("drop table if exists {stage}"))
    database.rows(
        place.statement("update {register} set source = $2, position_seq = $3, stage = $4 where table_name = $1"),
        (place.table, source, position, place.stage),
    )
    return Standing(position, tuple((name, kind) for name, kind in fields))


def _create(database: Session, place: Place, fields: Fields, is_history: bool) -> None:
    wanted = f"{place.schema}.{place.table}"
    if database.value(place.statement("select to_regclass($1) is not null"), (_quoted(place),)):
        raise Conflict(f"the table {wanted} exists, and was not made of a stream", "choose another name, or drop it")
    if is_history:
        rest = "valid_from timestamptz not null, valid_to timestamptz, is_current boolean not null, primary key (_key, _seq)"
    else:
        rest = "_published_at timestamptz not null, primary key (_key)"
    database.rows(
        place.statement(
            f'create table {{table}} (_key text collate "C" not null, {{columns}} _seq bigint not null, {rest})',
            columns=listed(column(name, kind) for name, kind in fields),
        )
    )
    if is_history:
        database.rows(place.statement("create unique index on {table} (_key) where is_current"))


def empty_stage(database: Session, place: Place) -> None:
    """Give up what was staged."""
    database.rows(place.statement("truncate {stage}"))


def close_table(database: Session, place: Place) -> None:
    """Leave nothing of a run behind."""
    database.rows(place.statement("drop table if exists {stage}"))


def _quoted(place: Place) -> str:
    return sql.Identifier(place.schema, place.table).as_string(None)


def column(name: str, kind: str) -> sql.Composable:
    """A column as a table is created with it."""
    found = _DECIMAL.fullmatch(kind)
    written = f"numeric{found[1]}" if found else _TYPES[kind]
    return sql.SQL("{} " + written).format(sql.Identifier(name))


def listed(parts: Iterable[sql.Composable]) -> sql.Composable:
    """Each with a comma behind it."""
    return sql.Composed([sql.Composed([part, sql.SQL(", ")]) for part in parts])

"""Rows of a table as messages, made by the Postgres that holds them: key, data, and why a row cannot be published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, LiteralString

from postbus.db import composition as sql
from postbus.model.errors import InvalidInput
from postbus.model.keys import FORBIDDEN, MOST_CHARACTERS, KeyTemplate, unknown_column
from postbus.pipelines.backfill.tables import Column, KeyRange, Table, rows_of_range

# The text of such a value can always be a token.
_TOKENS: Final = {"smallint", "integer", "bigint", "uuid", "oid", "boolean"}
_AS_THEY_ARE: Final = {"json", "jsonb"}


@dataclass(frozen=True, slots=True)
class Shape:
    """What messages are made of.

    Attributes:
        key: The template of their keys.
        data: The column that is the data; None takes the whole row, as JSON.
        data_type: What the stream holds.
        is_escaped: Whether values of the key are escaped as by `escaped_token`. Else rows with one that is no token are rejected.
    """

    key: KeyTemplate
    data: str | None
    data_type: str
    is_escaped: bool = False

    def check(self, table: Table) -> None:
        """Refuse columns that the table does not have.

        Raises:
            InvalidInput: There is one.
        """
        for name in (*self.key.columns, *([self.data] if self.data is not None else [])):
            if table.column(name) is None:
                raise unknown_column(name, [column.name for column in table.columns])
        data = None if self.data is None else table.column(self.data)
        if data is not None and data.type == "bytea" and self.data_type != "bytes":
            raise InvalidInput(f'column "{data.name}" is bytea, and the stream holds {self.data_type}')


def statement_for(table: Table, wanted: KeyRange, shape: Shape, *, as_stored: bool = False) -> str:
    """The statement that reads the rows of a range as key, data, problem and, for those with a problem, the row as text.

    Data is text, or bytes; as_stored leaves JSON as such, which a stream of this server takes without parsing it.
    """
    problem = _problem(table, shape)
    row = sql.SQL("case when {} is not null then row_to_json(t.*)::text end").format(problem)
    selected = (
        sql.SQL("{} as key").format(_key(table, shape)),
        sql.SQL("{} as data").format(_data(table, shape, "" if as_stored and shape.data_type == "json" else "::text")),
        sql.SQL("{} as problem").format(problem),
        sql.SQL("{} as row").format(sql.SQL("null::text") if problem == _NONE else row),
    )
    return rows_of_range(table, wanted, sql.SQL(", ").join(selected))


_NONE: Final = sql.SQL("null::text")


def _value(name: str) -> sql.Composed:
    return sql.SQL("{}::text").format(sql.Identifier("t", name))


def _key(table: Table, shape: Shape) -> sql.Composable:
    parts: list[sql.Composable] = [sql.Literal(shape.key.texts[0])]
    for name, text in zip(shape.key.columns, shape.key.texts[1:], strict=True):
        is_safe = _column(table, name).type in _TOKENS
        parts += [_escaped(name) if shape.is_escaped and not is_safe else _value(name), sql.Literal(text)]
    return sql.SQL("({})::text").format(sql.SQL(" || ").join(parts))


def _escaped(name: str) -> sql.Composed:
    """As `escaped_token`, of a column."""
    return sql.SQL(
        "case when {value} ~ {special} then ("
        "select string_agg("
        "case when c.c ~ {special} then '%' || upper(lpad(to_hex(ascii(c.c)), 2, '0')) else c.c end, '' order by c.n"
        ") from regexp_split_to_table({value}, '') with ordinality as c (c, n)"
        ") when {value} = '' then '%' else {value} end"
    ).format(value=_value(name), special=sql.Literal(FORBIDDEN.replace("[", "[%", 1)))


def _data(table: Table, shape: Shape, cast: LiteralString) -> sql.Composable:
    if shape.data is None:
        return sql.SQL("row_to_json(t.*)" + cast)
    column = table.column(shape.data)
    assert column is not None  # noqa: S101
    if column.type == "bytea":
        return sql.Identifier("t", column.name)
    if shape.data_type != "json" or column.type in _AS_THEY_ARE:
        return _value(column.name)
    return sql.SQL("to_json({})" + cast).format(sql.Identifier("t", column.name))


def _problem(table: Table, shape: Shape) -> sql.Composable:
    """Why a row cannot be published; null for those that can, and nothing to compute where all can."""
    found = [
        problem
        for name in shape.key.columns
        if (problem := _token_problem(_column(table, name), is_escaped=shape.is_escaped)) is not None
    ]
    if any(_column(table, name).type not in _TOKENS for name in shape.key.columns):
        said = sql.Literal(f"the key has more than {MOST_CHARACTERS} characters")
        longer = sql.SQL("case when length({}) > {} then {} end")
        found.append(longer.format(_key(table, shape), sql.Literal(MOST_CHARACTERS), said))
    if shape.data is not None and _column(table, shape.data).is_nullable:
        said = sql.Literal(f'column "{shape.data}" has no value')
        found.append(sql.SQL("case when {} is null then {} end").format(sql.Identifier("t", shape.data), said))
    return sql.SQL("coalesce({})").format(sql.SQL(", ").join(found)) if found else _NONE


def _token_problem(column: Column, *, is_escaped: bool) -> sql.Composable | None:
    if not column.is_nullable and (is_escaped or column.type in _TOKENS):
        return None
    value = _value(column.name)
    missing = sql.Literal(f'column "{column.name}" of the key has no value')
    if is_escaped:
        return sql.SQL("case when {} is null then {} end").format(value, missing)
    return sql.SQL(
        "case when {value} is null or {value} = '' then {missing}"
        " when {value} ~ {forbidden} then {begin} || left({value}, 100) || {end} end"
    ).format(
        value=value,
        missing=missing,
        forbidden=sql.Literal(FORBIDDEN),
        begin=sql.Literal(f'column "{column.name}" of the key is "'),
        end=sql.Literal('", which cannot be a token'),
    )


def _column(table: Table, name: str) -> Column:
    column = table.column(name)
    assert column is not None  # noqa: S101
    return column

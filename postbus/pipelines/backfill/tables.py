"""Tables and queries of any Postgres, which are read by ranges of a key, all at one snapshot.

Postbus need not be installed there. What order the key has is left to the source: ranges are cut and compared by the operators
that it finds for "<" and ">", by the collations of the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from postbus.db import composition as sql
from postbus.db.plain import PlainConnection, connect
from postbus.model.errors import InvalidInput, NotFound

# Texts of values are the same in all sessions, and times in JSON are in UTC.
SETTINGS: Final = """
set local datestyle = 'ISO, YMD';
set local intervalstyle = 'postgres';
set local timezone = 'UTC';
set local extra_float_digits = 1;
set local bytea_output = 'hex';
set local client_encoding = 'UTF8';
set local jit = off
"""
# Above so many rows ranges are cut by a sample.
_EXACT_ROWS: Final = 500_000
_SAMPLED_PER_RANGE: Final = 200
_NAME: Final = """
select
    format('%%I.%%I', n.nspname, c.relname),
    c.relname,
    greatest(c.reltuples, 0)::bigint,
    c.relkind::text in ('r', 'm', 'p')
from pg_catalog.pg_class as c
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.oid = to_regclass(%s)
"""
_PRIMARY_KEY: Final = """
select a.attname
from pg_catalog.pg_index as i
cross join lateral unnest(i.indkey::smallint[]) with ordinality as k (attnum, place)
join pg_catalog.pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.attnum
where i.indrelid = to_regclass(%s)
    and i.indisprimary
    and k.place <= i.indnkeyatts
order by k.place
"""
_NEVER_NULL: Final = """
select a.attname from pg_catalog.pg_attribute as a where a.attrelid = to_regclass(%s) and a.attnotnull and a.attnum > 0
"""
_TYPE: Final = "select pg_catalog.format_type(%s, -1)"
_MOMENT: Final = "select pg_catalog.pg_export_snapshot(), pg_catalog.pg_current_snapshot()::text"
_LSN: Final = """
select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end::text
"""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, with the name of its type."""

    name: str
    type: str
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class Table:
    """What is read: a table, or a query in parentheses.

    Attributes:
        relation: The text that follows "from".
        name: The table's own name; None for a query.
        columns: All columns.
        key: Those by which it is cut into ranges.
        row_estimate: About how many rows it has, as far as Postgres knows.
        has_samples: Whether it can be sampled.
    """

    relation: str
    name: str | None
    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    row_estimate: int
    has_samples: bool

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Rows with after < key <= to, by the texts of the key's values; None has no bound. Or those without a value there."""

    after: tuple[str, ...] | None
    to: tuple[str, ...] | None
    is_of_nulls: bool = False


class Moment:
    """A snapshot of a source that others can read at, as long as this connection holds it.

    Attributes:
        id: By which they name it.
        snapshot: Which transactions it sees.
        wal_lsn: Where the WAL was just before.
    """

    def __init__(self, connection: PlainConnection, id: str, snapshot: str, wal_lsn: str) -> None:
        self.id = id
        self.snapshot = snapshot
        self.wal_lsn = wal_lsn
        self._connection = connection

    def check(self) -> None:
        """Find out whether it still holds.

        Raises:
            postbus.Unavailable: It does not.
        """
        self._connection.rows("select 1")

    def describe(self, table: str | None, query: str | None, key: Sequence[str]) -> Table:
        """What is to be read, by the columns of the primary key unless others are named.

        Raises:
            NotFound: There is no such table.
            InvalidInput: It has no primary key, or no such column.
        """
        never_null: set[str] = set()
        name, estimate, has_samples = None, 0, False
        if table is not None:
            found = self._connection.rows(_NAME, (table,))
            if not found:
                raise NotFound(f'table "{table}" does not exist', "write it as schema.table")
            ((relation, name, estimate, has_samples),) = found
            never_null = {column for (column,) in self._connection.rows(_NEVER_NULL, (table,))}
            key = key or [column for (column,) in self._connection.rows(_PRIMARY_KEY, (table,))]
        else:
            # The user's own query, in a transaction that can only read. A comment at its end does not take the rest with it.
            relation = f"({(query or '').strip().rstrip(';')}\n)"
        columns = self._columns(relation, never_null)
        if not key:
            raise InvalidInput(
                f'table "{table}" has no primary key' if table else "a query has no primary key",
                "name the columns to cut it by, indexed if possible: --pk customer,id",
            )
        by_name = {column.name: column for column in columns}
        for wanted in key:
            if wanted not in by_name:
                raise InvalidInput(f'there is no column "{wanted}"', f"there are: {', '.join(by_name)}")
        return Table(relation, name, columns, tuple(by_name[wanted] for wanted in key), estimate, has_samples)

    def _columns(self, relation: str, never_null: set[str]) -> tuple[Column, ...]:
        statement = sql.SQL("select t.* from {} as t limit 0").format(_text(relation))
        return tuple(
            Column(name, self._connection.rows(_TYPE, (oid,))[0][0], name not in never_null)
            for name, oid in self._connection.columns(statement)
        )

    def split(self, table: Table, rows: int) -> list[KeyRange]:
        """Ranges of about so many rows, which together hold every row, also those that come later."""
        step: int = rows
        sample: sql.Composable = sql.SQL("")
        if table.has_samples and table.row_estimate > _EXACT_ROWS:
            step = _SAMPLED_PER_RANGE
            percent = min(100.0, 100.0 * step / rows)
            sample = sql.SQL("tablesample system ({})").format(sql.Literal(percent))
        names = [sql.Identifier(f"key_{place}") for place in range(len(table.key))]
        columns = [
            sql.SQL("{} as {}").format(sql.Identifier("t", c.name), n) for c, n in zip(table.key, names, strict=True)
        ]
        statement = sql.SQL(
            "select {texts} from (select {columns}, row_number() over (order by {order}) as place"
            " from {relation} as t {sample} where {present}) as r where r.place % {step} = 0 order by r.place"
        ).format(
            texts=sql.SQL(", ").join(sql.SQL("r.{}::text").format(name) for name in names),
            columns=sql.SQL(", ").join(columns),
            order=_order(table),
            relation=_text(table.relation),
            sample=sample,
            present=_present(table),
            step=sql.Literal(step),
        )
        edges: list[tuple[str, ...]] = list(dict.fromkeys(self._connection.rows(statement)))
        bounds = [None, *edges, None]
        ranges = [KeyRange(low, high) for low, high in pairwise(bounds)]
        if any(column.is_nullable for column in table.key):
            ranges.append(KeyRange(None, None, is_of_nulls=True))
        return ranges


@contextmanager
def held_moment(url: str) -> Iterator[Moment]:
    """A snapshot of a database, held until this ends.

    Raises:
        postbus.Error: The database cannot be reached, or asked for one.
    """
    with connect(url) as connection:
        # Before the snapshot, so that what it does not see was not flushed long ago.
        ((wal_lsn,),) = connection.rows(_LSN)
        connection.run("begin isolation level repeatable read read only")
        connection.run(SETTINGS)
        connection.run("set local idle_in_transaction_session_timeout = 0; set local statement_timeout = 0")
        ((name, snapshot),) = connection.rows(_MOMENT)
        yield Moment(connection, name, snapshot, wal_lsn)
        connection.rollback()


def rows_of_range(table: Table, wanted: KeyRange, selected: sql.Composable) -> str:
    """The statement that reads expressions over `t`, a row of a table, for the rows of a range, in the order of the key."""
    conditions = [_absent(table)] if wanted.is_of_nulls else [_present(table)]
    for values, operator in ((wanted.after, sql.SQL(">")), (wanted.to, sql.SQL("<="))):
        if values is not None:
            literals = (
                sql.SQL("{}::{}").format(sql.Literal(value), _text(column.type))
                for value, column in zip(values, table.key, strict=True)
            )
            conditions.append(
                sql.SQL("({}) {} ({})").format(_key_columns(table), operator, sql.SQL(", ").join(literals))
            )
    return (
        sql.SQL("select {} from {} as t where {} order by {}")
        .format(selected, _text(table.relation), sql.SQL(" and ").join(conditions), _order(table))
        .as_string()
    )


def _text(written: str) -> sql.SQL:
    """A name that Postgres has quoted, or a query of the user."""
    return sql.SQL(written)


def _key_columns(table: Table) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier("t", column.name) for column in table.key)


def _order(table: Table) -> sql.Composed:
    # By the operator that "<" means here, as the comparisons do: a type's own order may be another one.
    return sql.SQL(", ").join(sql.SQL("{} using <").format(sql.Identifier("t", column.name)) for column in table.key)


def _present(table: Table) -> sql.Composable:
    nullable = [sql.SQL("{} is not null").format(sql.Identifier("t", c.name)) for c in table.key if c.is_nullable]
    return sql.SQL(" and ").join(nullable) if nullable else sql.SQL("true")


def _absent(table: Table) -> sql.Composable:
    nullable = [sql.SQL("{} is null").format(sql.Identifier("t", c.name)) for c in table.key if c.is_nullable]
    return sql.SQL("({})").format(sql.SQL(" or ").join(nullable))

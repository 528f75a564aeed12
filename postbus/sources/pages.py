"""Reads the existing rows of a table by pages of its key, each at a snapshot of its own, and marks the log behind it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from postbus.db import composition as sql
from postbus.db.plain import PlainConnection
from postbus.db.replication.pgoutput import Column, Relation, Row
from postbus.model.errors import Error
from postbus.sources import catalog
from postbus.sources.recent import Snapshot
from postbus.sources.settings import SourceSettings
from postbus.sources.target import Progress

MARK: Final = "postbus:page"
_FEWEST: Final = 500
_MOST: Final = 8_000
_MOST_BYTES: Final = 8 * 1024 * 1024
_FETCH: Final = 500
_SECONDS: Final = 0.2
_COLUMNS: Final = """
select a.attname, format_type(a.atttypid, a.atttypmod)
from pg_attribute as a
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped
"""


class Unpublishable(Error):
    """A table whose existing rows cannot be published."""


@dataclass(frozen=True, slots=True)
class Page:
    """Rows as a snapshot sees them.

    Attributes:
        mark: By which it is known in the log.
        progress: Where it began.
        relation: The table, with its columns.
        rows: The rows, with the text of each value.
        to_key: The key of the last row, as text; None without rows.
        is_last: There are no more.
    """

    mark: str
    progress: Progress
    relation: Relation
    rows: Sequence[Row]
    snapshot: Snapshot
    to_key: list[str] | None
    is_last: bool


@dataclass(frozen=True, slots=True)
class _Layout:
    oid: int
    columns: tuple[str, ...]
    key: tuple[str, ...]
    key_types: tuple[str, ...]
    condition: str | None


class PageReader:
    """Reads pages by a connection of its own."""

    def __init__(self, database: PlainConnection, settings: SourceSettings) -> None:
        self._database = database
        self._settings = settings
        self._size = _FEWEST * 2

    def sees_all_before(self) -> str:
        """A transaction id that is younger than all that have changed anything so far."""
        return str(self._database.rows("select pg_current_xact_id()::text")[0][0])

    def has_ended_before(self, xid: str) -> bool:
        """Whether all transactions before that one have ended, and all others see what they did."""
        return bool(
            self._database.rows("select pg_snapshot_xmin(pg_current_snapshot()) > %s::text::xid8", (xid,))[0][0]
        )

    def read(self, progress: Progress) -> Page:
        """The next page of a table.

        Raises:
            Unpublishable: The table cannot be read by its key.
        """
        database = self._database
        began = time.monotonic()
        table = sql.Identifier(progress.schema, progress.name)
        database.run("begin isolation level repeatable read")
        try:
            # Before the snapshot: a rewrite of the table, or a truncate, would make it look empty to an older one.
            database.run(sql.SQL("lock table {} in access share mode").format(table))
            snapshot = Snapshot.parse(database.rows("select pg_current_snapshot()::text")[0][0])
            layout = self._layout(progress)
            oids, rows, is_last = self._fetch(table, layout, progress)
        except BaseException:
            database.rollback()
            raise
        database.run("commit")
        self._adapt(time.monotonic() - began, len(rows))
        relation = _relation(progress, layout, oids)
        places = [layout.columns.index(name) for name in layout.key]
        to_key = [_text(rows[-1][place]) for place in places] if rows else None
        return Page(str(uuid4()), progress, relation, rows, snapshot, to_key, is_last)

    def mark(self, page: Page) -> None:
        """Write into the log that the page was read before here."""
        self._database.rows("select pg_logical_emit_message(true, %s, %s)", (MARK, page.mark))

    def _layout(self, progress: Progress) -> _Layout:
        listed = catalog.published(self._database, self._settings.publication) or []
        here = next((each for each in listed if (each.schema, each.name) == (progress.schema, progress.name)), None)
        if here is None:
            raise Unpublishable("the publication no longer has this table")
        oid = self._database.rows(
            "select %s::regclass::oid", (f"{_quoted(progress.schema)}.{_quoted(progress.name)}",)
        )[0][0]
        key = catalog.primary_key(self._database, oid)
        if not key:
            raise Unpublishable(
                "it has no primary key, by which its rows could be read", "give it one, then resume the backfill"
            )
        if missing := [name for name in key if name not in here.columns]:
            raise Unpublishable(f"column {missing[0]} of its key is not published")
        types = dict(self._database.rows(_COLUMNS, (oid,)))
        return _Layout(oid, here.columns, tuple(key), tuple(types[name] for name in key), here.condition)

    def _fetch(self, table: sql.Identifier, layout: _Layout, progress: Progress) -> tuple[list[int], list[Row], bool]:
        columns = sql.SQL(", ").join(map(sql.Identifier, layout.columns))
        key = sql.SQL(", ").join(map(sql.Identifier, layout.key))
        conditions: list[sql.Composable] = [sql.SQL("true")]
        if layout.condition is not None:
            # As Postgres shows it.
            conditions.append(sql.SQL("({})").format(sql.SQL(layout.condition)))
        if progress.after_key is not None:
            bounds = sql.SQL(", ").join(
                sql.SQL("{}::{}").format(sql.Literal(value), sql.SQL(kind))
                for value, kind in zip(progress.after_key, layout.key_types, strict=True)
            )
            conditions.append(sql.SQL("({}) > ({})").format(key, bounds))
        self._database.run(
            sql.SQL("declare page no scroll cursor for select {} from {} where {} order by {} limit {}").format(
                columns, table, sql.SQL(" and ").join(conditions), key, sql.Literal(self._size)
            )
        )
        rows: list[Row] = []
        size = 0
        oids: list[int] = []
        while len(rows) < self._size and size < _MOST_BYTES:
            oids, found = self._database.texts(f"fetch {min(_FETCH, self._size - len(rows))} from page")
            rows += found  # type: ignore[arg-type]
            size += sum(len(value) for row in found for value in row if value is not None)
            if not found:
                return oids, rows, True
        return oids, rows, False

    def _adapt(self, seconds: float, count: int) -> None:
        """Read as much at a time as takes about a fifth of a second."""
        if seconds > _SECONDS:
            self._size = max(_FEWEST, self._size // 2)
        elif seconds < _SECONDS / 2 and count == self._size:
            self._size = min(_MOST, self._size * 2)


def _relation(progress: Progress, layout: _Layout, oids: Sequence[int]) -> Relation:
    columns = tuple(Column(name, oid, -1, name in layout.key) for name, oid in zip(layout.columns, oids, strict=True))
    return Relation(layout.oid, progress.schema, progress.name, "d", columns)


def _text(value: object) -> str:
    assert isinstance(value, bytes)  # noqa: S101
    return value.decode()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

# Generated from postbus/client/_async/sources.py by `make generate`; edit that file.

"""The Postgres sources of a bus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from postbus.client._sync.base import Client
from postbus.model.errors import NotFound
from postbus.model.source import (
    OPERATIONS,
    BackfillAction,
    DroppedSource,
    SourceCheck,
    SourceFormat,
    SourceInfo,
    SourceOperation,
)
from postbus.operations import sources as calls


class Sources(Client):
    """Creates, changes and lists Postgres sources; get it from `bus.sources`.

    A source publishes the changes of tables to a stream. It is read by one process at a time of those that run `postbus up` or
    `postbus source run`; a bus itself does not read it. Each transaction is published once, whatever ends.
    """

    def check(
        self,
        *,
        tables: Sequence[str],
        url: str | None = None,
        operations: Sequence[SourceOperation] = OPERATIONS,
        backfill: bool = True,
        publication: str | None = None,
    ) -> SourceCheck:
        """Find out what stands in the way of a source, and what to do about it. Nothing is changed.

        Args:
            tables: See `create`.
            url: See `create`.
            operations: The operations of the source.
            backfill: See `create`.
            publication: See `create`.

        Raises:
            InvalidInput: An argument is not valid.
            Conflict: The database cannot be reached.
        """
        return self._transport.run(
            calls.check(tables=tables, url=url, operations=operations, backfill=backfill, publication=publication)
        )

    def create(
        self,
        name: str,
        stream: str,
        *,
        tables: Sequence[str],
        url: str | None = None,
        operations: Sequence[SourceOperation] = OPERATIONS,
        columns: Mapping[str, Sequence[str]] | None = None,
        filters: Mapping[str, str] | None = None,
        key_template: str = "db.schema.table.pk",
        format: SourceFormat = "sequin",
        backfill: bool = True,
        slot: str | None = None,
        publication: str | None = None,
        paused: bool = False,
    ) -> None:
        """Create a source, with a publication and a replication slot. What is committed after this will be published.

        Args:
            name: Its name: 1 to 63 letters, digits, "_" or "-".
            stream: The stream to publish to, of type json.
            tables: Tables as schema.table, where * stands for any characters. Names without a schema are looked for on the
                search path. Tables that are made later and fit are found within a minute.
            url: The database with the tables, as it is reached from here (over HTTP: from the server). It is stored, and never
                shown. None is the bus's own database.
            operations: What to publish: of insert, update, delete and truncate.
            columns: By table, the columns to publish; all of other tables.
            filters: By table, a condition for the rows to publish, in SQL.
            key_template: What keys are made of: db, schema, table, pk, action and source stand for what they name.
            format: "sequin", "sequin2024" or "debezium".
            backfill: Publish the existing rows too, with the action read, while changes go on.
            slot: The name of the slot; None makes one up.
            publication: A publication that exists, to be used as it is, where the role may not make one.
            paused: Do not read it until `resume`.

        Raises:
            InvalidInput: A setting is not valid.
            NotFound: There is no such stream.
            Conflict: The source exists, or its database cannot be reached, or has to be changed first: the hint says how, in SQL
                to paste.
            Unavailable: A transaction in that database has been open for long.
        """
        self._transport.run(
            calls.create(
                name,
                stream,
                tables=tables,
                url=url,
                operations=operations,
                columns=columns or {},
                filters=filters or {},
                key_template=key_template,
                format=format,
                backfill=backfill,
                slot=slot,
                publication=publication,
                paused=paused,
            )
        )

    def alter(
        self,
        name: str,
        *,
        tables: Sequence[str] | None = None,
        operations: Sequence[SourceOperation] | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
        filters: Mapping[str, str] | None = None,
        key_template: str | None = None,
        format: SourceFormat | None = None,
        url: str | None = None,
    ) -> None:
        """Change a source. None leaves a setting as it is. Its reader goes on with the new ones within seconds.

        Raises:
            InvalidInput: A setting is not valid.
            NotFound: There is no such source.
        """
        self._transport.run(
            calls.alter(
                name,
                tables=tables,
                operations=operations,
                columns=columns,
                filters=filters,
                key_template=key_template,
                format=format,
                url=url,
            )
        )

    def drop(self, name: str, *, force: bool = False) -> DroppedSource:
        """Remove a source, with its slot and its publication. What it has published stays.

        Args:
            name: The source.
            force: Remove it also if its database cannot be reached. Its slot then keeps the log there until it is dropped.

        Raises:
            NotFound: There is no such source.
            Conflict: Its database cannot be reached, or refuses.
        """
        return self._transport.run(calls.drop(name, force=force))

    def pause(self, name: str) -> None:
        """Stop reading a source until `resume`. Nothing is missed, but its database keeps its log for so long.

        Raises:
            NotFound: There is no such source.
        """
        self._transport.run(calls.pause(name))

    def resume(self, name: str) -> None:
        """Read a source on, or try again at once what it could not do.

        Raises:
            NotFound: There is no such source.
        """
        self._transport.run(calls.resume(name))

    def restart(self, name: str, *, backfill: bool = True, empty_first: bool = False) -> None:
        """Begin anew with a new slot, where the old one is lost or no longer fits: changes in between are not published.

        Args:
            name: The source.
            backfill: Publish all rows that there are then. Rows that were deleted in between are not reported.
            empty_first: Publish a truncate of each table before its rows, so that copies lose what was deleted in between.

        Raises:
            InvalidInput: `empty_first` without `backfill`.
            NotFound: There is no such source.
        """
        self._transport.run(calls.restart(name, backfill=backfill, empty_first=empty_first))

    def backfill(self, name: str, *, tables: Sequence[str] | None = None, action: BackfillAction = "start") -> int:
        """Publish existing rows, from the beginning (start), or pause, resume or cancel that.

        Args:
            name: The source.
            tables: Some of its tables; None are all.
            action: What to do.

        Returns:
            How many tables it concerns.

        Raises:
            NotFound: There is no such source, or it has no such table.
        """
        return self._transport.run(calls.backfill(name, tables=tables, action=action))

    def list_all(self) -> list[SourceInfo]:
        """All sources, by name."""
        return self._transport.run(calls.list_all())

    def info(self, name: str) -> SourceInfo:
        """A source: its settings, its state, how far it is.

        Raises:
            NotFound: There is no such source.
        """
        found = self._transport.run(calls.info(name))
        if found is None:
            raise NotFound(f'source "{name}" does not exist')
        return found

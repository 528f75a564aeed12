"""Makes and removes what a source needs in its database: a publication, and after it a slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from postbus.db import composition as sql
from postbus.db.plain import PlainConnection
from postbus.model.errors import Error
from postbus.sources import catalog, conditions
from postbus.sources.catalog import Table
from postbus.sources.checks import Finding, check
from postbus.sources.settings import SourceSettings, Stopped

_Setting = TypeVar("_Setting")


def refuse(findings: Sequence[Finding]) -> None:
    """Stop if something stands in the way.

    Raises:
        Stopped: All that does, and what to do about it.
    """
    if findings:
        remedies = [finding.remedy for finding in findings if finding.remedy]
        raise Stopped("refused", "; ".join(finding.problem for finding in findings), "\n".join(remedies) or None)


def prepare(database: PlainConnection, settings: SourceSettings) -> int:
    """Make publication and slot. Returns the position after which transactions will come.

    Raises:
        Stopped: The database has to be changed first.
        Unavailable: A transaction has been open for long.
    """
    facts, found, findings = check(database, settings, is_new=True)
    refuse(findings)
    if not settings.is_foreign_publication:
        publish_tables(database, settings, found)
    # A slot that an attempt before this one has left behind, or that no longer fits. After the publication: decoding looks at the
    # catalog as it was, and would not find a younger one.
    catalog.drop_slot(database, settings.slot)
    return catalog.create_slot(database, settings.slot, facts.version)


def publish_tables(database: PlainConnection, settings: SourceSettings, found: Sequence[Table]) -> None:
    """Have the publication publish these tables as the settings say, and prove that their users can still write to them.

    Raises:
        Stopped: Updates or deletes of a table would fail, or a column or condition is wrong.
    """
    name = sql.Identifier(settings.publication)
    listed = sql.SQL(", ").join(_published(settings, table) for table in found)
    options = sql.SQL("(publish = {}, publish_via_partition_root = true)").format(
        sql.Literal(", ".join(settings.operations))
    )
    exists = catalog.published(database, settings.publication) is not None
    try:
        database.run("begin")
        if exists:
            database.run_alone(sql.SQL("alter publication {} set table {}").format(name, listed))
            database.run(sql.SQL("alter publication {} set {}").format(name, options))
        else:
            database.run_alone(sql.SQL("create publication {} for table {} with {}").format(name, listed, options))
        if "update" in settings.operations or "delete" in settings.operations:
            for table in found:
                # Whether the identity of rows is published is checked when an update or delete begins, even if it finds no row.
                if "delete" in settings.operations:
                    database.rows(sql.SQL("explain delete from {} where false").format(table.identifier))
                if "update" in settings.operations:
                    database.rows(_no_update(database, table))
        database.run("commit")
    except Error as error:
        database.run("rollback")
        if exists and catalog.is_passing(error):
            # Another session holds a lock on a table. It is tried again at the next look.
            return
        raise Stopped(
            "refused",
            f"the tables cannot be published: {error.message}",
            error.hint
            or "columns and conditions may only leave out, and only look at, what is not in the replica identity: "
            "alter table … replica identity full; -- or choose other columns",
        ) from error


def _no_update(database: PlainConnection, table: Table) -> sql.Composed:
    rows = database.rows(
        "select attname from pg_attribute where attrelid = %s and attnum > 0 and not attisdropped and attgenerated = '' "
        "and attidentity <> 'a' order by attnum limit 1",
        (table.oid,),
    )
    column = sql.Identifier(rows[0][0])
    return sql.SQL("explain update {} set {} = {} where false").format(table.identifier, column, column)


def _published(settings: SourceSettings, table: Table) -> sql.Composed:
    parts: list[sql.Composable] = [table.identifier]
    columns = _of(settings.columns, table)
    condition = _of(settings.filters, table)
    if columns:
        parts.append(sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Identifier, columns))))
    if condition:
        conditions.check(condition)
        parts.append(sql.SQL("where ({})").format(sql.SQL(condition)))
    return sql.SQL(" ").join(parts)


def _of(settings: Mapping[str, _Setting], table: Table) -> _Setting | None:
    """What is set for a table, by its full name, or its name alone."""
    return settings.get(table.full_name) or (settings.get(table.name) if table.is_on_path else None)


def remove(database: PlainConnection, settings: SourceSettings) -> None:
    """Drop slot and publication."""
    catalog.drop_slot(database, settings.slot)
    if not settings.is_foreign_publication:
        database.run(sql.SQL("drop publication if exists {}").format(sql.Identifier(settings.publication)))

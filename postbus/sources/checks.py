"""Whether a source's database can be read, and what to change where it cannot, in SQL to paste."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from postbus.db.plain import PlainConnection
from postbus.sources import catalog
from postbus.sources.catalog import ServerFacts, Table
from postbus.sources.settings import SourceSettings

_OLDEST = 150000


@dataclass(frozen=True, slots=True)
class Finding:
    """What stands in the way.

    Attributes:
        problem: In one line.
        remedy: SQL to paste, or what to do.
    """

    problem: str
    remedy: str | None


def check(
    database: PlainConnection, settings: SourceSettings, *, is_new: bool
) -> tuple[ServerFacts, list[Table], list[Finding]]:
    """What the database is, its tables that are meant, and what stands in the way.

    Args:
        database: The source's database.
        settings: What is to be read.
        is_new: There is no slot yet.
    """
    facts = catalog.server_facts(database)
    findings = _server_findings(facts, settings, is_new=is_new)
    found = catalog.tables(database, settings.tables)
    if settings.is_foreign_publication:
        listed = catalog.published(database, settings.publication)
        if listed is None:
            findings.append(
                Finding(f'publication "{settings.publication}" does not exist', _publication_sql(settings, found))
            )
        names = {(table.schema, table.name) for table in listed or ()}
        found = [table for table in found if (table.schema, table.name) in names]
    if not found:
        findings.append(
            Finding(
                f"no table fits {', '.join(settings.tables)}", "name tables as schema.table, with * for any characters"
            )
        )
    if not settings.is_foreign_publication:
        findings += _table_findings(facts, settings, found)
    return facts, found, findings


def _server_findings(facts: ServerFacts, settings: SourceSettings, *, is_new: bool) -> list[Finding]:
    findings = []
    if facts.version < _OLDEST:
        findings.append(Finding("the source runs a PostgreSQL before 15", "upgrade it"))
    if facts.is_standby:
        findings.append(
            Finding("the source is a standby, where a backfill cannot mark the log", "give the URL of its primary")
        )
    if facts.wal_level != "logical":
        findings.append(
            Finding(
                f"wal_level of the source is {facts.wal_level}",
                "alter system set wal_level = logical; -- then restart Postgres",
            )
        )
    if not facts.may_replicate:
        findings.append(
            Finding(f"role {facts.role} may not replicate", f"alter role {_quoted(facts.role)} replication;")
        )
    if is_new and facts.free_slots < 1:
        findings.append(
            Finding(
                "all replication slots of the source are in use",
                "alter system set max_replication_slots = 20; -- then restart Postgres; or drop one that nobody needs",
            )
        )
    if is_new and facts.free_senders < 1:
        findings.append(
            Finding(
                "all WAL senders of the source are in use",
                "alter system set max_wal_senders = 20; -- then restart Postgres",
            )
        )
    return findings


def _table_findings(facts: ServerFacts, settings: SourceSettings, found: Sequence[Table]) -> list[Finding]:
    findings = []
    if not facts.may_create:
        findings.append(
            Finding(
                f"role {facts.role} may not create a publication",
                f"grant create on database {_quoted(facts.database)} to {_quoted(facts.role)};",
            )
        )
    foreign = [table for table in found if not table.is_own]
    if foreign:
        names = ", ".join(table.full_name for table in foreign)
        findings.append(
            Finding(
                f"role {facts.role} does not own {names}, so it cannot publish them",
                f"{_publication_sql(settings, found)} -- as their owner; then name that publication for the source",
            )
        )
    if {"update", "delete"} & set(settings.operations):
        for table in found:
            findings += [
                Finding(
                    f"{name} has no replica identity: updates and deletes of it would fail once it is published",
                    f"alter table {name} replica identity full; -- or give it a primary key",
                )
                for name in table.without_identity
            ]
    unreadable = [table for table in found if settings.backfill and not table.is_readable]
    findings += [
        Finding(
            f"role {facts.role} may not select from {table.full_name}, as the backfill does",
            f"grant select on {_quoted(table.schema)}.{_quoted(table.name)} to {_quoted(facts.role)};",
        )
        for table in unreadable
    ]
    return findings


def _publication_sql(settings: SourceSettings, found: Sequence[Table]) -> str:
    names = ", ".join(f"{_quoted(table.schema)}.{_quoted(table.name)}" for table in found) or "…"
    operations = ", ".join(settings.operations)
    return (
        f"create publication {_quoted(settings.publication)} for table {names} "
        f"with (publish = '{operations}', publish_via_partition_root = true);"
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

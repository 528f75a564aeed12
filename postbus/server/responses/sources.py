"""Postgres sources in responses."""

from __future__ import annotations

from datetime import datetime

import msgspec

from postbus.model.source import DroppedSource, SourceCheck, SourceInfo
from postbus.server.responses.common import utc


class SourceTable(msgspec.Struct):
    """`backfill` is one of none, pending, running, paused, done and refused; `row_count` says how many rows were read."""

    schema: str
    name: str
    backfill: str
    row_count: int
    estimated_count: int | None
    problem: str | None


class Source(msgspec.Struct):
    """Its URL is not shown. `problem` says what is wrong, and `remedy` what to do about it."""

    name: str
    stream: str
    database: str | None
    tables: list[str]
    operations: list[str]
    columns: dict[str, list[str]]
    filters: dict[str, str]
    key_template: str
    format: str
    backfill: bool
    slot: str
    publication: str
    state: str
    problem: str | None
    remedy: str | None
    lag_bytes: int | None
    lag_seconds: float | None
    wal_held_bytes: int | None
    change_count: int
    transaction_count: int
    changes_per_second: float | None
    position: str | None
    committed_at: datetime | None
    found_tables: list[SourceTable]
    created_at: datetime
    updated_at: datetime | None


class Finding(msgspec.Struct):
    """What stands in the way, and what to do about it: possibly SQL to paste."""

    problem: str
    remedy: str | None


class CheckedSource(msgspec.Struct):
    """`findings` is empty if nothing stands in the way. `tables` are those that fit."""

    database: str
    version: int
    tables: list[str]
    findings: list[Finding]


class RemovedSource(msgspec.Struct):
    """`cleaned`: slot and publication are gone too. Else `remedy` is what to run in the source's database."""

    name: str
    cleaned: bool
    remedy: str | None
    deleted: bool = True


class Backfilled(msgspec.Struct):
    """How many tables it concerns."""

    tables: int


def source(found: SourceInfo) -> Source:
    values = {name: getattr(found, name) for name in SourceInfo.__dataclass_fields__}
    times = {
        name: None if values[name] is None else utc(values[name])
        for name in ("committed_at", "created_at", "updated_at")
    }
    tables = [
        SourceTable(each.schema, each.name, each.backfill, each.row_count, each.estimated_count, each.problem)
        for each in found.found_tables
    ]
    return Source(
        **{
            **values,
            **times,
            "tables": list(found.tables),
            "operations": list(found.operations),
            "columns": {table: list(columns) for table, columns in found.columns.items()},
            "filters": dict(found.filters),
            "found_tables": tables,
        }
    )


def checked_source(found: SourceCheck) -> CheckedSource:
    findings = [Finding(each.problem, each.remedy) for each in found.findings]
    return CheckedSource(found.database, found.version, list(found.tables), findings)


def removed_source(name: str, found: DroppedSource) -> RemovedSource:
    return RemovedSource(name, found.cleaned, found.remedy)

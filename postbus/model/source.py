"""Postgres sources: tables whose changes become messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

SourceFormat = Literal["sequin", "sequin2024", "debezium"]
SourceOperation = Literal["insert", "update", "delete", "truncate"]
BackfillAction = Literal["start", "pause", "resume", "cancel"]
OPERATIONS: Final[tuple[SourceOperation, ...]] = ("insert", "update", "delete", "truncate")
# The states in which nothing has to be done.
WELL: Final = ("streaming", "backfilling", "starting")
FORMATS: Final[tuple[SourceFormat, ...]] = ("sequin", "sequin2024", "debezium")


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table of a source.

    Attributes:
        schema: Its schema.
        name: Its name.
        backfill: What becomes of its existing rows: none, pending, running, paused, done or refused.
        row_count: How many of them were read.
        estimated_count: About how many there were in all when it was found.
        problem: Why they cannot be read, or None.
    """

    schema: str
    name: str
    backfill: str
    row_count: int
    estimated_count: int | None
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceInfo:
    """A source, as it is shown: without its URL.

    Attributes:
        name: Its name.
        stream: The stream that it publishes to.
        database: The database with the tables; no password.
        tables: The patterns of the tables.
        operations: What is published: of insert, update, delete and truncate.
        columns: By table, which columns are; all of the others.
        filters: By table, which rows are, as a condition in SQL.
        key_template: What keys are made of.
        format: The format of messages.
        backfill: Whether existing rows are published too.
        slot: Its replication slot.
        publication: Its publication.
        state: starting, backfilling, streaming, paused, not_running, waiting_for_slot, unreachable, refused, gap, diverged or
            slot_lost.
        problem: What is wrong, or None.
        remedy: What to do about it, possibly SQL to paste; or None.
        lag_bytes: How much of the source's log has not been looked at.
        lag_seconds: For how long the oldest change waits.
        wal_held_bytes: How much log the source keeps for its slot.
        change_count: How many messages it has published.
        transaction_count: Of how many transactions.
        changes_per_second: How many it published of late.
        position: Up to where the source's log is published.
        committed_at: When the last published transaction was committed.
        found_tables: Its tables.
        created_at: When it was created.
        updated_at: When its reader last said how it goes.
    """

    name: str
    stream: str
    database: str | None
    tables: tuple[str, ...]
    operations: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]
    filters: Mapping[str, str]
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
    found_tables: tuple[SourceTable, ...]
    created_at: datetime
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class SourceFinding:
    """What stands in the way of a source.

    Attributes:
        problem: What it is.
        remedy: SQL to paste, or what else to do; None if nobody knows.
    """

    problem: str
    remedy: str | None


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """What a database is like for a source.

    Attributes:
        database: Where the URL leads to.
        version: The version of its Postgres, such as 180004.
        tables: The tables that fit, as schema.table.
        findings: What stands in the way; empty if nothing does.
    """

    database: str
    version: int
    tables: tuple[str, ...]
    findings: tuple[SourceFinding, ...]


@dataclass(frozen=True, slots=True)
class DroppedSource:
    """What became of a source's slot and publication.

    Attributes:
        cleaned: They are gone from the source's database.
        remedy: SQL to paste there, if they are not.
    """

    cleaned: bool
    remedy: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSource:
    """A source as a user describes it."""

    name: str
    stream: str
    tables: Sequence[str]
    url: str | None = field(repr=False)
    operations: Sequence[str]
    columns: Mapping[str, Sequence[str]]
    filters: Mapping[str, str]
    key_template: str
    format: str
    backfill: bool
    slot: str | None
    publication: str | None
    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChanges:
    """Settings of a source that change; None leaves one as it is."""

    tables: Sequence[str] | None
    operations: Sequence[str] | None
    columns: Mapping[str, Sequence[str]] | None
    filters: Mapping[str, str] | None
    key_template: str | None
    format: str | None
    url: str | None = field(repr=False)

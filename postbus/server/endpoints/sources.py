"""Postgres sources: check, create, list, change, pause, resume, restart, backfill, remove."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from postbus.model.source import OPERATIONS, BackfillAction, SourceFormat, SourceOperation
from postbus.operations import sources
from postbus.server.endpoint import Call, Endpoints
from postbus.server.fields import Name, NoNul, given
from postbus.server.responses import Data
from postbus.server.responses.sources import (
    Backfilled,
    CheckedSource,
    RemovedSource,
    Source,
    checked_source,
    removed_source,
    source,
)

endpoints = Endpoints()

_TABLE = r"^([^.\x00]+\.)?[^.\x00]+$"
TableName = Annotated[str, Meta(pattern=_TABLE, max_length=200, description="A table, such as public.orders")]
Tables = Annotated[list[TableName], Meta(min_length=1, max_length=1000)]
Operations = Annotated[list[SourceOperation], Meta(min_length=1, max_length=4)]
Columns = dict[TableName, Annotated[list[NoNul], Meta(min_length=1)]]
Condition = Annotated[str, Meta(min_length=1, max_length=10_000, extra_json_schema={"format": "sql-condition"})]
Filters = dict[TableName, Condition]
KeyTemplate = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x20\x7f*>.%]+(\.[^\x00-\x20\x7f*>.%]+)*$",
        max_length=200,
        description="Tokens joined by dots; db, schema, table, pk, action and source stand for what they name",
    ),
]
Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=2000,
        description="A URL of Postgres; it is never shown",
        extra_json_schema={"format": "postgres-url"},
    ),
]
SlotName = Annotated[str, Meta(pattern=r"^[a-z0-9_]{1,63}$")]
PublicationName = Annotated[str, Meta(pattern=r"^[^\x00]{1,63}$")]


class SourceToCheck(Struct, forbid_unknown_fields=True):
    """Without `url`, the bus's own database is meant."""

    tables: Tables
    url: Url | None = None
    operations: Operations | UnsetType = UNSET
    backfill: bool = True
    publication: PublicationName | None = None


class NewSource(Struct, forbid_unknown_fields=True):
    """Without `url`, the bus's own database is meant. `tables` may have patterns, with * for any characters."""

    name: Name
    stream: Name
    tables: Tables
    url: Url | None = None
    operations: Operations | UnsetType = UNSET
    columns: Columns = {}
    filters: Filters = {}
    key_template: KeyTemplate = "db.schema.table.pk"
    format: SourceFormat = "sequin"
    backfill: bool = True
    slot: SlotName | None = None
    publication: PublicationName | None = None
    paused: bool = False


class ChangedSource(Struct, forbid_unknown_fields=True):
    """What is left out stays as it is."""

    tables: Tables | UnsetType = UNSET
    operations: Operations | UnsetType = UNSET
    columns: Columns | UnsetType = UNSET
    filters: Filters | UnsetType = UNSET
    key_template: KeyTemplate | UnsetType = UNSET
    format: SourceFormat | UnsetType = UNSET
    url: Url | UnsetType = UNSET


class Restart(Struct, forbid_unknown_fields=True):
    """With `backfill`, all rows that there are then are published; with `empty_first`, after a truncate of each table."""

    backfill: bool = True
    empty_first: bool = False


class BackfillToDo(Struct, forbid_unknown_fields=True):
    """Without `tables`, all of the source are meant."""

    tables: Tables | None = None
    action: BackfillAction = "start"


class HowToDrop(Struct):
    """With `force`, the source is forgotten also if its database cannot be reached."""

    force: bool = False


@endpoints.add(sources.CHECK, invalid_status=422)
async def check_source(call: Call, body: SourceToCheck) -> Data[CheckedSource]:
    """Find out what stands in the way of a Postgres source. Nothing is changed."""
    found = await call.bus.sources.check(
        tables=body.tables,
        url=body.url,
        operations=given(body.operations) or OPERATIONS,
        backfill=body.backfill,
        publication=body.publication,
    )
    return Data(checked_source(found))


@endpoints.add(sources.CREATE, invalid_status=422)
async def create_source(call: Call, body: NewSource) -> Data[Source]:
    """Create a Postgres source, with publication and slot."""
    await call.bus.sources.create(
        body.name,
        await call.state.names.stream_name(body.stream),
        tables=body.tables,
        url=body.url,
        operations=given(body.operations) or OPERATIONS,
        columns=body.columns,
        filters=body.filters,
        key_template=body.key_template,
        format=body.format,
        backfill=body.backfill,
        slot=body.slot,
        publication=body.publication,
        paused=body.paused,
    )
    return await _info(call, body.name)


@endpoints.add(sources.LIST)
async def list_sources(call: Call) -> Data[list[Source]]:
    """List the Postgres sources, with their states."""
    return Data([source(each) for each in await call.bus.sources.list_all()])


@endpoints.add(sources.INFO)
async def get_source(call: Call) -> Data[Source]:
    """Get a Postgres source."""
    return await _info(call, _name(call))


@endpoints.add(sources.ALTER, invalid_status=422)
async def alter_source(call: Call, body: ChangedSource) -> Data[Source]:
    """Change a Postgres source."""
    await call.bus.sources.alter(
        _name(call),
        tables=given(body.tables),
        operations=given(body.operations),
        columns=given(body.columns),
        filters=given(body.filters),
        key_template=given(body.key_template),
        format=given(body.format),
        url=given(body.url),
    )
    return await _info(call, _name(call))


@endpoints.add(sources.DROP)
async def drop_source(call: Call, query: HowToDrop) -> Data[RemovedSource]:
    """Remove a Postgres source, with publication and slot. What it has published stays."""
    found = await call.bus.sources.drop(_name(call), force=query.force)
    return Data(removed_source(_name(call), found))


@endpoints.add(sources.PAUSE)
async def pause_source(call: Call) -> Data[Source]:
    """Pause a Postgres source. Its database keeps its log meanwhile."""
    await call.bus.sources.pause(_name(call))
    return await _info(call, _name(call))


@endpoints.add(sources.RESUME)
async def resume_source(call: Call) -> Data[Source]:
    """Resume a Postgres source."""
    await call.bus.sources.resume(_name(call))
    return await _info(call, _name(call))


@endpoints.add(sources.RESTART, invalid_status=422)
async def restart_source(call: Call, body: Restart) -> Data[Source]:
    """Begin a Postgres source anew, with a new slot."""
    await call.bus.sources.restart(_name(call), backfill=body.backfill, empty_first=body.empty_first)
    return await _info(call, _name(call))


@endpoints.add(sources.BACKFILL, invalid_status=422)
async def backfill_source(call: Call, body: BackfillToDo) -> Data[Backfilled]:
    """Publish the existing rows of tables of a Postgres source, or pause, resume or cancel that."""
    return Data(Backfilled(await call.bus.sources.backfill(_name(call), tables=body.tables, action=body.action)))


def _name(call: Call) -> str:
    return call.request.parameters["source"]


async def _info(call: Call, name: str) -> Data[Source]:
    return Data(source(await call.bus.sources.info(name)))

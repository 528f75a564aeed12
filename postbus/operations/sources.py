"""Postgres sources: check, create, alter, drop, pause, resume, restart, backfill, list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final

from postbus.codec import parameters, sources
from postbus.model.source import BackfillAction, DroppedSource, NewSource, SourceChanges, SourceCheck, SourceInfo
from postbus.operations.call import Call, Http, Program, Route, Sql, first, nothing

CHECK: Final = Route("POST", "/api/sources/check", "manage", on_all_streams=True)
CREATE: Final = Route("POST", "/api/sources", "manage", on_all_streams=True)
LIST: Final = Route("GET", "/api/sources", "manage", on_all_streams=True)
INFO: Final = Route("GET", "/api/sources/{source}", "manage", on_all_streams=True)
ALTER: Final = Route("PATCH", "/api/sources/{source}", "manage", on_all_streams=True)
DROP: Final = Route("DELETE", "/api/sources/{source}", "manage", on_all_streams=True)
PAUSE: Final = Route("POST", "/api/sources/{source}/pause", "manage", on_all_streams=True)
RESUME: Final = Route("POST", "/api/sources/{source}/resume", "manage", on_all_streams=True)
RESTART: Final = Route("POST", "/api/sources/{source}/restart", "manage", on_all_streams=True)
BACKFILL: Final = Route("POST", "/api/sources/{source}/backfill", "manage", on_all_streams=True)


def check(
    *,
    tables: Sequence[str],
    url: str | None,
    operations: Sequence[str],
    backfill: bool,
    publication: str | None,
) -> Call[SourceCheck]:
    new = NewSource(
        name="check",
        stream="",
        tables=tables,
        url=url,
        operations=operations,
        columns={},
        filters={},
        key_template="pk",
        format="sequin",
        backfill=backfill,
        slot=None,
        publication=publication,
        paused=False,
    )
    body = {
        "tables": list(tables),
        "url": url,
        "operations": list(operations),
        "backfill": backfill,
        "publication": publication,
    }
    return Call(
        Program(lambda bus_url: _setup().examine(bus_url, new)),
        Http(CHECK, (), lambda answer: sources.check_of(answer.data), body=body),
        repeatable=True,
    )


def create(
    name: str,
    stream: str,
    *,
    tables: Sequence[str],
    url: str | None,
    operations: Sequence[str],
    columns: Mapping[str, Sequence[str]],
    filters: Mapping[str, str],
    key_template: str,
    format: str,
    backfill: bool,
    slot: str | None,
    publication: str | None,
    paused: bool,
) -> Call[None]:
    new = NewSource(
        name=name,
        stream=stream,
        tables=tables,
        url=url,
        operations=operations,
        columns=columns,
        filters=filters,
        key_template=key_template,
        format=format,
        backfill=backfill,
        slot=slot,
        publication=publication,
        paused=paused,
    )
    body = {
        "name": name,
        "stream": stream,
        "tables": list(tables),
        "url": url,
        "operations": list(operations),
        "columns": {table: list(listed) for table, listed in columns.items()},
        "filters": dict(filters),
        "key_template": key_template,
        "format": format,
        "backfill": backfill,
        "slot": slot,
        "publication": publication,
        "paused": paused or None,
    }
    return Call(Program(lambda bus_url: _setup().create(bus_url, new)), Http(CREATE, (), nothing, body=body))


def alter(
    name: str,
    *,
    tables: Sequence[str] | None,
    operations: Sequence[str] | None,
    columns: Mapping[str, Sequence[str]] | None,
    filters: Mapping[str, str] | None,
    key_template: str | None,
    format: str | None,
    url: str | None,
) -> Call[None]:
    """Change what is given."""
    listed = None if columns is None else {table: list(each) for table, each in columns.items()}
    changes = SourceChanges(
        tables=tables,
        operations=operations,
        columns=listed,
        filters=filters,
        key_template=key_template,
        format=format,
        url=url,
    )
    return Call(
        Program(lambda bus_url: _setup().alter(bus_url, name, changes)),
        Http(
            ALTER,
            (name,),
            nothing,
            body={
                "tables": tables,
                "operations": operations,
                "columns": listed,
                "filters": filters,
                "key_template": key_template,
                "format": format,
                "url": url,
            },
        ),
        repeatable=True,
    )


def drop(name: str, *, force: bool) -> Call[DroppedSource]:
    return Call(
        Program(lambda bus_url: _setup().drop(bus_url, name, force=force)),
        Http(
            DROP,
            (name,),
            lambda answer: DroppedSource(answer.data["cleaned"], answer.data["remedy"]),
            query={"force": "true" if force else None},
        ),
    )


def pause(name: str) -> Call[None]:
    return Call(
        Sql("select postbus.pause_source($1)", (name,), nothing), Http(PAUSE, (name,), nothing), repeatable=True
    )


def resume(name: str) -> Call[None]:
    return Call(
        Sql("select postbus.resume_source($1)", (name,), nothing), Http(RESUME, (name,), nothing), repeatable=True
    )


def restart(name: str, *, backfill: bool, empty_first: bool) -> Call[None]:
    return Call(
        Sql("select postbus.restart_source($1, $2, $3)", (name, backfill, empty_first), nothing),
        Http(RESTART, (name,), nothing, body={"backfill": backfill, "empty_first": empty_first}),
    )


def backfill(name: str, *, tables: Sequence[str] | None, action: BackfillAction) -> Call[int]:
    return Call(
        Sql(
            "select postbus.backfill_source($1, $2, $3)",
            (name, _texts(tables), action),
            lambda found: int(first(found)),
        ),
        Http(
            BACKFILL,
            (name,),
            lambda answer: int(answer.data["tables"]),
            body={"tables": None if tables is None else list(tables), "action": action},
        ),
    )


def list_all() -> Call[list[SourceInfo]]:
    return Call(
        Sql("select s.* from postbus.list_sources() as s", (), lambda found: [sources.of_row(row) for row in found]),
        Http(LIST, (), lambda answer: [sources.of_answer(each) for each in answer.data]),
        repeatable=True,
    )


def info(name: str) -> Call[SourceInfo | None]:
    """The source with that name; None if there is none."""
    return Call(
        Sql(
            "select s.* from postbus.list_sources($1) as s",
            (name,),
            lambda found: sources.of_row(found[0]) if found else None,
        ),
        Http(INFO, (name,), lambda answer: sources.of_answer(answer.data)),
        repeatable=True,
    )


def _setup() -> ModuleType:
    """What speaks to the source's database. Programs that speak to a server need no driver of Postgres."""
    from postbus.sources import setup

    return setup


def _texts(values: Sequence[str] | None) -> Any:
    return None if values is None else parameters.text_array(values)

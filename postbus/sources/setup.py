"""Checks, creates and removes sources, on behalf of a user who waits for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

from postbus.db.arrays import TextArray
from postbus.db.plain import PlainConnection
from postbus.db.session import KeptSession
from postbus.model.errors import Conflict, Error, InvalidInput, NotFound, Unavailable
from postbus.model.source import (
    FORMATS,
    OPERATIONS,
    DroppedSource,
    NewSource,
    SourceChanges,
    SourceCheck,
    SourceFinding,
)
from postbus.sources import catalog, conditions, keys, preparing, target
from postbus.sources.checks import Finding, check
from postbus.sources.reader import begin_source
from postbus.sources.settings import SourceSettings, Stopped, shown_url

_CREATE: Final = """
select postbus.create_source($1, $2, $3, $4, $5, $6::jsonb, $7::jsonb, $8, $9, $10, $11, $12, true, $13)
"""


def check_settings(url: str | None, filters: Mapping[str, str] | None, key_template: str | None) -> str | None:
    """Refuse what no source can have. Returns what is shown of the URL.

    Raises:
        InvalidInput: It says what is wrong.
    """
    if key_template is not None:
        keys.check(key_template)
    for condition in (filters or {}).values():
        conditions.check(condition)
    return None if url is None else shown_url(url)


def _check_new(new: NewSource) -> str | None:
    if not new.tables or not all(new.tables):
        raise InvalidInput("tables is empty", "name at least one table, such as public.orders")
    if not new.operations or (unknown := set(new.operations) - set(OPERATIONS)):
        wrong = sorted(unknown)[0] if new.operations else ""
        raise InvalidInput(f'operations has "{wrong}"', f"name some of {', '.join(OPERATIONS)}")
    if new.format not in FORMATS:
        raise InvalidInput(f'"{new.format}" is not a format', f"choose {', '.join(FORMATS)}")
    return check_settings(new.url, new.filters, new.key_template)


def examine(bus_url: str, new: NewSource) -> SourceCheck:
    """What stands in the way of a source. Nothing is changed.

    Raises:
        Conflict: The database cannot be reached.
    """
    shown = _check_new(new)
    with _opened(new.url or bus_url, new.name) as database:
        facts, found, findings = check(database, _wanted(new), is_new=True)
    return SourceCheck(
        shown or facts.database,
        facts.version,
        tuple(table.full_name for table in found),
        tuple(SourceFinding(finding.problem, finding.remedy) for finding in findings),
    )


def create(bus_url: str, new: NewSource) -> None:
    """Create a source with slot and publication: what is committed from now on will be published.

    Raises:
        Conflict: The source's database cannot be reached, or has to be changed first, or there is a source of that name.
        Unavailable: A transaction in it has been open for long.
    """
    shown = _check_new(new)
    session = KeptSession.open(bus_url)
    try:
        if target.find(session, new.name) is not None:
            raise Conflict(f'source "{new.name}" already exists', "change it with edit, or remove it first")
        with _opened(new.url or bus_url, new.name) as database:
            _, _, findings = check(database, _wanted(new), is_new=True)
            _refuse(findings)
            # Paused, so that no reader looks at it before it is complete.
            session.rows(_CREATE, _parameters(new, shown))
            _complete(session, database, new.name, bus_url)
            if not new.paused:
                session.rows("select postbus.resume_source($1)", (new.name,))
    finally:
        session.close()


def _complete(session: KeptSession, database: PlainConnection, name: str, bus_url: str) -> None:
    settings = target.find(session, name)
    if settings is None:
        raise NotFound(f'source "{name}" does not exist')
    try:
        begin_source(session, database, settings, bus_url)
    except Error as error:
        with suppress(Error):
            preparing.remove(database, settings)
        session.rows("select postbus.drop_source($1)", (name,))
        if isinstance(error, Stopped):
            raise Conflict(error.message, error.remedy) from error
        raise


def alter(bus_url: str, name: str, changes: SourceChanges) -> None:
    """Change what is given.

    Raises:
        InvalidInput: A setting is not valid.
        NotFound: There is no such source.
    """
    shown = check_settings(changes.url, changes.filters, changes.key_template)
    session = KeptSession.open(bus_url)
    try:
        session.rows(
            "select postbus.alter_source($1, $2, $3, $4::jsonb, $5::jsonb, $6, $7, $8, $9)",
            (
                name,
                None if changes.tables is None else _texts(changes.tables),
                None if changes.operations is None else _texts(changes.operations),
                None
                if changes.columns is None
                else json.dumps({table: list(each) for table, each in changes.columns.items()}),
                None if changes.filters is None else json.dumps(dict(changes.filters)),
                changes.key_template,
                changes.format,
                changes.url,
                shown,
            ),
        )
    finally:
        session.close()


def drop(bus_url: str, name: str, *, force: bool) -> DroppedSource:
    """Remove a source, with slot and publication.

    Args:
        bus_url: The database of the bus.
        name: The source.
        force: Remove it also if its database cannot be reached or refuses.

    Raises:
        NotFound: There is no such source.
        Conflict: Its database cannot be reached, or refuses.
    """
    session = KeptSession.open(bus_url)
    try:
        settings = target.find(session, name)
        if settings is None:
            raise NotFound(f'source "{name}" does not exist')
        # Its reader would begin anew.
        session.rows("select postbus.pause_source($1)", (name,))
        remedy = None
        try:
            with catalog.open_source(settings.url or bus_url, name) as database:
                preparing.remove(database, settings)
        except Error as error:
            if not force:
                session.rows("select postbus.resume_source($1)", (name,))
                raise Conflict(
                    f"the slot {settings.slot} could not be dropped: {error.message}",
                    "with force, the source is forgotten anyway; its slot then keeps the log of its database until it is dropped",
                ) from error
            remedy = _leftovers(settings)
        session.rows("select postbus.drop_source($1)", (name,))
        return DroppedSource(remedy is None, remedy)
    finally:
        session.close()


@contextmanager
def _opened(url: str, name: str) -> Iterator[PlainConnection]:
    """A connection to a database whose URL a user has just given: that it cannot be reached is not for us to wait for."""
    with ExitStack() as stack:
        try:
            database = stack.enter_context(catalog.open_source(url, name))
        except Unavailable as error:
            raise Conflict(error.message, error.hint) from None
        yield database


def _leftovers(settings: SourceSettings) -> str:
    publication = "" if settings.is_foreign_publication else f' drop publication if exists "{settings.publication}";'
    return f"select pg_drop_replication_slot('{settings.slot}');{publication}"


def _refuse(findings: Sequence[Finding]) -> None:
    try:
        preparing.refuse(findings)
    except Stopped as stopped:
        raise Conflict(stopped.message, stopped.remedy) from None


def _wanted(new: NewSource) -> SourceSettings:
    return SourceSettings(
        id=0,
        name=new.name,
        url=new.url,
        tables=new.tables,
        operations=new.operations,
        columns=new.columns,
        filters=new.filters,
        key_template=new.key_template,
        format=new.format,
        backfill=new.backfill,
        slot=new.slot or "",
        publication=new.publication or f"postbus_{new.name}",
        is_foreign_publication=new.publication is not None,
    )


def _parameters(new: NewSource, shown: str | None) -> tuple[object, ...]:
    return (
        new.name,
        new.stream,
        _texts(new.tables),
        new.url,
        _texts(new.operations),
        json.dumps({table: list(columns) for table, columns in new.columns.items()}),
        json.dumps(dict(new.filters)),
        new.key_template,
        new.format,
        new.backfill,
        new.slot,
        new.publication,
        shown,
    )


def _texts(values: Sequence[str]) -> TextArray:
    return TextArray([value.encode() for value in values])

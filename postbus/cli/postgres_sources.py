"""`postbus source postgres`: tables whose changes become messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from postbus.cli import as_curl, output
from postbus.cli.global_options import Commands, current
from postbus.cli.options import Yes, confirm, open_bus
from postbus.model.errors import InvalidInput, NotFound
from postbus.model.source import FORMATS, OPERATIONS, SourceFormat, SourceInfo, SourceOperation

if TYPE_CHECKING:
    from postbus import Bus

app = Commands("Changes of Postgres tables: add, list, show, change, pause, resume, remove.")
COLUMNS = ("name", "stream", "database", "tables", "state", "lag", "behind", "wal_held", "changes")
Name = Annotated[str, typer.Argument(help="The source's name.")]
Table = Annotated[
    list[str] | None,
    typer.Option("--table", "-t", help="A table, such as public.orders or 'shop.*'; may be repeated."),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        help="The database with the tables: a URL, env:NAME for a variable, or - to read it from stdin. "
        "Without it, the bus's own.",
    ),
]
Operation = Annotated[
    list[str] | None, typer.Option("--operation", help=f"What to publish: {', '.join(OPERATIONS)}; all without it.")
]
Columns = Annotated[
    list[str] | None, typer.Option("--columns", help="TABLE=COLUMN,COLUMN: only these columns; may be repeated.")
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", help="TABLE=CONDITION: only rows that fit, in SQL; may be repeated."),
]
_KEY_HELP = "What keys are made of: db, schema, table, pk, action and source stand for what they name."


@app.command("add")
def add(
    name: Annotated[str | None, typer.Argument(help="Its name; asked for without it.")] = None,
    stream: Annotated[str | None, typer.Argument(help="The stream to publish to; created if you say so.")] = None,
    table: Table = None,
    database_url: DatabaseUrl = None,
    operation: Operation = None,
    columns: Columns = None,
    where: Where = None,
    key: Annotated[str, typer.Option("--key", help=_KEY_HELP)] = "db.schema.table.pk",
    format: Annotated[str, typer.Option("--format", help=f"Of messages: {', '.join(FORMATS)}.")] = "sequin",
    backfill: Annotated[bool, typer.Option("--backfill/--no-backfill", help="Publish the existing rows too.")] = True,
    slot: Annotated[str | None, typer.Option("--slot", help="The name of its replication slot.")] = None,
    publication: Annotated[
        str | None, typer.Option("--publication", help="A publication that exists, to use as it is.")
    ] = None,
    create_stream: Annotated[bool, typer.Option("--create-stream", help="Create the stream if there is none.")] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Do not read it yet.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only say what stands in the way.")] = False,
) -> None:
    """Publish the changes of tables to a stream. Without arguments, on a terminal, it asks for what it needs.

    Example: postbus source postgres add shop changes --table public.orders --table 'shop.*' --create-stream
    """
    asks = sys.stdin.isatty() and not current().as_json and not current().as_curl
    url = _url(database_url)
    if asks and not (name and stream and table):
        name, stream, table, url = _ask(name, stream, table, url)
    if not name or not stream or not table:
        raise InvalidInput(
            "a source needs a name, a stream and tables",
            "postbus source postgres add NAME STREAM --table public.orders",
        )
    wanted = _operations(operation) or OPERATIONS
    with open_bus() as bus:
        if check:
            _check(bus, table, url, wanted, backfill=backfill, publication=publication)
            return
        if create_stream or asks:
            with as_curl.preparing():
                _create_stream(bus, stream, without_asking=create_stream)
        bus.sources.create(
            name,
            stream,
            tables=table,
            url=url,
            operations=wanted,
            columns=_listed(columns),
            filters=_pairs(where),
            key_template=key,
            format=_format(format),
            backfill=backfill,
            slot=slot,
            publication=publication,
            paused=paused,
        )
        with as_curl.preparing():
            info = bus.sources.info(name)
    output.done(
        f"created source {name}: what is committed from now on goes to stream {stream}", name=name, stream=stream
    )
    if info.state in ("not_running", "starting") and not paused:
        output.say("it is read by: postbus up; or by: postbus source run")
    output.say(f"see how it goes: postbus source postgres info {name}")


@app.command("ls")
def ls() -> None:
    """List Postgres sources, with their states.

    Example: postbus source postgres ls
    """
    with open_bus() as bus:
        found = bus.sources.list_all()
    output.emit(found, COLUMNS, shown=shown, empty="no sources yet; add one: postbus source postgres add")


@app.command("info")
def info(name: Name) -> None:
    """Show a source: its settings, its state, its tables. Its URL is never shown.

    Example: postbus source postgres info shop
    """
    with open_bus() as bus:
        found = bus.sources.info(name)
    if output.as_json():
        output.emit_json(found)
        return
    output.emit_one(found, leave_out=("found_tables", "remedy"))
    if found.remedy:
        typer.echo(f"to do:\n{found.remedy}")
    for table in found.found_tables:
        of = "" if table.estimated_count is None else f" of about {max(table.estimated_count, table.row_count):,}"
        rows = "" if table.backfill == "none" else f"  backfill {table.backfill}: {table.row_count:,}{of} rows"
        why = f"  {table.problem}" if table.problem else ""
        typer.echo(f"table  {table.schema}.{table.name}{rows}{why}")


@app.command("edit")
def edit(
    name: Name,
    table: Table = None,
    database_url: DatabaseUrl = None,
    operation: Operation = None,
    columns: Columns = None,
    where: Where = None,
    key: Annotated[str | None, typer.Option("--key", help=_KEY_HELP)] = None,
    format: Annotated[str | None, typer.Option("--format", help=f"Of messages: {', '.join(FORMATS)}.")] = None,
) -> None:
    """Change a source. What is left out stays as it is; lists are replaced as a whole.

    Example: postbus source postgres edit shop --table public.orders --table public.customers
    """
    with open_bus() as bus:
        bus.sources.alter(
            name,
            tables=table,
            operations=_operations(operation),
            columns=None if columns is None else _listed(columns),
            filters=None if where is None else _pairs(where),
            key_template=key,
            format=None if format is None else _format(format),
            url=_url(database_url),
        )
    output.done(f"changed source {name}", name=name)


@app.command("pause")
def pause(name: Name) -> None:
    """Stop reading a source until it is resumed. Nothing is missed, but its database keeps its log meanwhile.

    Example: postbus source postgres pause shop
    """
    with open_bus() as bus:
        bus.sources.pause(name)
    output.done(f"paused source {name}; its slot keeps the log of its database until it is resumed", name=name)


@app.command("resume")
def resume(name: Name) -> None:
    """Read a source on, or try again at once what it could not do.

    Example: postbus source postgres resume shop
    """
    with open_bus() as bus:
        bus.sources.resume(name)
    output.done(f"resumed source {name}", name=name)


@app.command("restart")
def restart(
    name: Name,
    backfill: Annotated[bool, typer.Option("--backfill/--no-backfill", help="Publish all rows that there are.")] = True,
    empty_first: Annotated[
        bool, typer.Option("--empty-first", help="Publish a truncate of each table before its rows.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Begin a source anew, with a new slot, after gap, diverged or slot_lost. Changes in between are not published.

    Example: postbus source postgres restart shop
    """
    confirm(f"Begin source {name} anew? What changed since it stopped is not published, but as rows.", yes=yes)
    with open_bus() as bus:
        bus.sources.restart(name, backfill=backfill, empty_first=empty_first)
    output.done(f"restarted source {name}", name=name)


@app.command("backfill")
def backfill(
    name: Name,
    table: Table = None,
    pause: Annotated[bool, typer.Option("--pause", help="Pause it.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on.")] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="End it.")] = False,
) -> None:
    """Publish the existing rows of a source's tables from the beginning, or pause, resume or cancel that.

    Example: postbus source postgres backfill shop --table public.orders
    """
    if pause + resume + cancel > 1:
        raise InvalidInput("--pause, --resume and --cancel exclude each other", "give one of them")
    with open_bus() as bus:
        count = bus.sources.backfill(
            name,
            tables=table,
            action="pause" if pause else "resume" if resume else "cancel" if cancel else "start",
        )
    output.done(f"it concerns {count} {'table' if count == 1 else 'tables'}", name=name, tables=count)


@app.command("rm")
def rm(
    name: Name,
    yes: Yes = False,
    force: Annotated[bool, typer.Option("--force", help="Also if its database cannot be reached.")] = False,
) -> None:
    """Remove a source, with its slot and publication. What it has published stays.

    Example: postbus source postgres rm shop
    """
    confirm(f"Remove source {name}, its slot and its publication?", yes=yes)
    with open_bus() as bus:
        dropped = bus.sources.drop(name, force=force)
    output.done(f"removed source {name}", name=name, cleaned=dropped.cleaned)
    if dropped.remedy:
        output.say(f"run in its database, or its log is kept for ever: {dropped.remedy}")


def shown(found: SourceInfo) -> dict[str, Any]:
    """The columns of a list."""
    return {
        "name": found.name,
        "stream": found.stream,
        "database": found.database,
        "tables": ",".join(found.tables)[:40],
        "state": found.state,
        "lag": _bytes(found.lag_bytes),
        "behind": None if found.lag_seconds is None else f"{found.lag_seconds:.1f} s",
        "wal_held": _bytes(found.wal_held_bytes),
        "changes": found.change_count,
    }


def _bytes(count: int | None) -> str | None:
    if count is None:
        return None
    for unit in ("B", "kB", "MB"):
        if count < 10_000:
            return f"{count:,} {unit}"
        count //= 1024
    return f"{count:,} GB"


def _url(given: str | None) -> str | None:
    """The URL that an option gives. With --as-curl it is not shown."""
    if given is None:
        return None
    if given == "-":
        given = sys.stdin.readline().strip()
    elif given.startswith("env:"):
        given = os.environ.get(given[4:]) or ""
        if not given:
            raise InvalidInput("the variable with the URL is not set", "set it, or give the URL itself")
    return "postgresql://URL_OF_THE_SOURCE" if current().as_curl else given


def _ask(
    name: str | None, stream: str | None, table: Sequence[str] | None, url: str | None
) -> tuple[str, str, list[str], str | None]:
    """Ask for what is missing."""
    if url is None and not typer.confirm("Are the tables in the bus's own database?", default=True, err=True):
        url = typer.prompt("The URL of their database (not shown)", hide_input=True, err=True)
    tables = list(table or ())
    if not tables:
        answer: str = typer.prompt("Tables, separated by spaces, such as public.orders or shop.*", err=True)
        tables = answer.split()
    name = name or typer.prompt("A name for the source", default="tables", err=True)
    stream = stream or typer.prompt("The stream to publish to", default=name, err=True)
    return name, stream, tables, url


def _create_stream(bus: Bus, stream: str, *, without_asking: bool) -> None:
    try:
        bus.stream_info(stream)
    except NotFound:
        if without_asking or typer.confirm(f"There is no stream {stream}. Create it?", default=True, err=True):
            bus.create_stream(stream)
            output.say(f"created stream {stream}")


def _check(
    bus: Bus,
    tables: Sequence[str],
    url: str | None,
    operations: Sequence[SourceOperation],
    *,
    backfill: bool,
    publication: str | None,
) -> None:
    found = bus.sources.check(tables=tables, url=url, operations=operations, backfill=backfill, publication=publication)
    if output.as_json():
        output.emit_json(found)
    else:
        for name in found.tables:
            typer.echo(f"table    {name}")
        for finding in found.findings:
            typer.echo(f"problem  {finding.problem}\n  {finding.remedy or ''}".rstrip())
        if not found.findings:
            output.say("nothing stands in the way")
    if found.findings:
        raise typer.Exit(1)


def _operations(given: Sequence[str] | None) -> list[SourceOperation] | None:
    if given is None:
        return None
    if unknown := [each for each in given if each not in OPERATIONS]:
        raise InvalidInput(f'"{unknown[0]}" is not an operation', f"choose of {', '.join(OPERATIONS)}")
    return cast("list[SourceOperation]", list(given))


def _format(given: str) -> SourceFormat:
    if given not in FORMATS:
        raise InvalidInput(f'"{given}" is not a format', f"choose {', '.join(FORMATS)}")
    return given


def _pairs(given: Sequence[str] | None) -> dict[str, str]:
    found = {}
    for each in given or ():
        table, sign, rest = each.partition("=")
        if not sign or not table or not rest:
            raise InvalidInput(f'"{each}" does not name a table', "write TABLE=…, such as public.orders=id,total")
        found[table] = rest
    return found


def _listed(given: Sequence[str] | None) -> Mapping[str, list[str]]:
    return {table: [each.strip() for each in rest.split(",")] for table, rest in _pairs(given).items()}

"""`postbus pipeline run ingest`: publishes rows of files and tables to a stream."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from postbus.cli import output
from postbus.cli.options import StreamName, pairs
from postbus.cli.pipelines.launch import (
    Continuous,
    Master,
    MaxBad,
    Options,
    Remote,
    build,
    collect,
    run_app,
    shown,
    started,
)


@run_app.command("ingest")
def ingest(
    stream: StreamName,
    files: Annotated[
        str | None, typer.Option(help="A file, a folder, or a pattern such as '/in/*.csv', that Spark can reach.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Or a table in Spark's catalog.")] = None,
    query: Annotated[str | None, typer.Option(help="Or a query of Spark SQL.")] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="json (an object in each line), csv (with a header) or parquet. Without it, by the files' names."
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(help="Columns and types, such as 'id bigint, name string'. Without it, inferred once and stored."),
    ] = None,
    schema_changes: Annotated[
        str | None,
        typer.Option(
            help="When later files have other columns or types: aside (rows that do not fit go aside), evolve (the schema takes "
            "new columns and wider types) or stop; aside."
        ),
    ] = None,
    key: Annotated[str | None, typer.Option(help="The key, with columns in braces: 'orders.{customer}.{id}'.")] = None,
    data: Annotated[
        str | None, typer.Option(help="The column with the data. Without it, the whole row as JSON.")
    ] = None,
    header: Annotated[list[str] | None, typer.Option(help="A header and its column, as NAME=COLUMN.")] = None,
    bad_into: Annotated[
        str | None,
        typer.Option(help="The stream for rows that cannot be published. Without it, the stream's name with -bad."),
    ] = None,
    separator: Annotated[str | None, typer.Option(help="The separator of CSV values; a comma.")] = None,
    multiline: Annotated[
        bool | None, typer.Option("--multiline", help="Allow line breaks in values of CSV files.")
    ] = None,
    max_bad: MaxBad = None,
    batch: Annotated[int | None, typer.Option(min=1, help="The largest number of files per step; 1,000.")] = None,
    every: Annotated[float | None, typer.Option(help="With --continuous, seconds to wait for more files; 10.")] = None,
    settle: Annotated[
        float | None, typer.Option(help="With --continuous, seconds since a file's last change before it is read; 2.")
    ] = None,
    redrive: Annotated[
        bool | None,
        typer.Option("--redrive", help="First publish rows that went aside and fit by now, each once."),
    ] = None,
    again: Annotated[
        bool | None, typer.Option("--again", help="Start over, even if files were published before.")
    ] = None,
    continuous: Continuous = False,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Publish the rows of files or of a table. Each file is published once, even after a restart.

    Example: postbus pipeline run ingest orders --files /in --key 'orders.{customer}.{id}'
    """
    given: dict[str, Any] = {
        "files": files,
        "table": table,
        "query": query,
        "format": format,
        "schema": schema,
        "schema_changes": schema_changes,
        "key": key,
        "data": data,
        "headers": pairs(header),
        "bad_into": bad_into,
        "max_bad": max_bad,
        "separator": separator,
        "multiline": multiline,
        "batch": batch,
        "every": every,
        "settle": settle,
        "redrive": redrive,
        "again": again,
    }
    values = collect(given, options)
    with started(stream, master, remote) as (spark, database):
        from postbus.pipelines import IngestOptions, ingest_files

        chosen = build(IngestOptions, stream, values)
        done = ingest_files(database, chosen, spark=spark, continuous=continuous, show=shown())
    output.emit_one(done)
    if done.bad:
        output.say(
            f"warning: {done.bad:,} of {done.messages + done.bad:,} rows went aside; see why: postbus stream read {done.bad_into}"
        )
    for change in done.schema_changes:
        output.say(f"the schema has changed: {change}")
    if redrive:
        output.say(f"{done.redriven:,} rows that had gone aside were published")
    for path in done.changed:
        output.say(f"this file changed after it was read, and is not read again: {path}")
    for path in done.gone:
        output.say(f"this file was removed before it was read: {path}")
    if not (done.messages or done.bad or done.files or again):
        output.say("there are no new files; publishing the same rows again needs --again")

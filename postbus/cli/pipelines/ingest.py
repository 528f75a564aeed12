"""`postbus pipeline run ingest`: rows of files and tables into a stream."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from postbus.cli import output
from postbus.cli.options import StreamName, pairs
from postbus.cli.pipelines.launch import Continuous, Master, Options, Remote, build, collect, run_app, shown, started


@run_app.command("ingest")
def ingest(
    stream: StreamName,
    files: Annotated[
        str | None, typer.Option(help="A file, a folder, or a pattern such as '/in/*.csv', that Spark can reach.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Or a table that Spark knows.")] = None,
    query: Annotated[str | None, typer.Option(help="Or a query of Spark SQL.")] = None,
    format: Annotated[
        str | None, typer.Option(help="json (an object in each line), csv (with a header) or parquet; by their names.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option(help="Columns and types, such as 'id bigint, name string'; inferred, and remembered.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="The key, with columns in braces: 'orders.{customer}.{id}'.")] = None,
    data: Annotated[str | None, typer.Option(help="The column that is the data; the whole row, as JSON.")] = None,
    header: Annotated[list[str] | None, typer.Option(help="A header and its column, as NAME=COLUMN.")] = None,
    bad_into: Annotated[
        str | None, typer.Option(help="The stream for rows that cannot be published; the stream's name and -bad.")
    ] = None,
    separator: Annotated[
        str | None, typer.Option(help="What stands between the values of a CSV file; a comma.")
    ] = None,
    multiline: Annotated[
        bool | None, typer.Option("--multiline", help="Values of CSV files may have line breaks.")
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="How many files a step takes at most; 1,000.")] = None,
    every: Annotated[float | None, typer.Option(help="With --continuous, seconds to wait for more files; 10,")] = None,
    settle: Annotated[
        float | None, typer.Option(help="and for how many seconds a file must not have changed; 2.")
    ] = None,
    again: Annotated[
        bool | None, typer.Option("--again", help="Begin anew, although files were published before.")
    ] = None,
    continuous: Continuous = False,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Publish the rows of files or of a table, each file once although it is killed and run again.

    Example: postbus pipeline run ingest orders --files /in --key 'orders.{customer}.{id}'
    """
    given: dict[str, Any] = {
        "files": files,
        "table": table,
        "query": query,
        "format": format,
        "schema": schema,
        "key": key,
        "data": data,
        "headers": pairs(header),
        "bad_into": bad_into,
        "separator": separator,
        "multiline": multiline,
        "batch": batch,
        "every": every,
        "settle": settle,
        "again": again,
    }
    values = collect(given, options)
    with started(stream, master, remote) as (spark, database):
        from postbus.pipelines import IngestOptions, ingest_files

        chosen = build(IngestOptions, stream, values)
        done = ingest_files(database, chosen, spark=spark, continuous=continuous, show=shown())
    output.emit_one(done)
    if done.bad:
        output.say(f"{done.bad:,} rows could not be published; see why: postbus stream read {done.bad_into}")
    for path in done.changed:
        output.say(f"changed since it was read, and not read again: {path}")
    for path in done.gone:
        output.say(f"gone before it was read: {path}")
    if not (done.messages or done.bad or done.files or again):
        output.say("nothing is new; what was published before is not published once more without --again")

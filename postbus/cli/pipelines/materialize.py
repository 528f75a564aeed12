"""`postbus pipeline run materialize`: a stream to a table."""

from __future__ import annotations

from typing import Annotated

import typer

from postbus.cli import output
from postbus.cli.options import StreamName
from postbus.cli.pipelines.launch import Continuous, Master, Options, Remote, collect, prepared, run_app, shown, started


@run_app.command("materialize")
def materialize(
    stream: StreamName,
    table: Annotated[str | None, typer.Option(help="The table, as name or schema.name; created if need be.")] = None,
    table_url: Annotated[
        str | None, typer.Option(help="The Postgres of the table, if another: a URL, env:NAME or file:PATH.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="Or a folder for snapshots of Parquet files.")] = None,
    changes: Annotated[
        bool | None, typer.Option("--changes", help="Data is a change: it has record and action, insert to delete.")
    ] = None,
    history: Annotated[
        bool | None, typer.Option("--history", help="Keep every version, with valid_from, valid_to, is_current.")
    ] = None,
    schema: Annotated[
        str | None, typer.Option(help="The columns, such as 'id BIGINT, tags JSON'; what messages have.")
    ] = None,
    bad_into: Annotated[str | None, typer.Option(help="The stream for messages that do not fit.")] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="How many messages a step takes at most; 500,000.")] = None,
    every: Annotated[float | None, typer.Option(help="With --continuous, seconds to wait for more; 5.")] = None,
    consumer: Annotated[str | None, typer.Option(help="The consumer that shows the lag; materialize-TABLE.")] = None,
    allow_loss: Annotated[
        bool | None, typer.Option("--allow-loss", help="Go on when messages were purged before they were read.")
    ] = None,
    again: Annotated[bool | None, typer.Option("--again", help="Empty the table and begin anew.")] = None,
    continuous: Continuous = False,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Keep a table of what a stream says of each key, each change once although it is killed and run again.

    Example: postbus pipeline run materialize prices --table prices --schema 'cents INT'
    """
    given = {
        "table": table,
        "table_url": table_url,
        "to": to,
        "changes": changes,
        "history": history,
        "schema": schema,
        "bad_into": bad_into,
        "batch": batch,
        "every": every,
        "consumer": consumer,
        "allow_loss": allow_loss,
        "again": again,
    }
    values = collect(given, options)
    bad = values.get("bad_into")
    chosen = prepared("MaterializeOptions", stream, values)
    with started([stream, *([bad] if bad else [])], master, remote) as (spark, database):
        from postbus.pipelines import materialize_stream

        count = materialize_stream(database, chosen, spark=spark, continuous=continuous, show=shown())
    output.emit_number(count, f"applied {count:,} messages of {stream}", name="applied")

"""`postbus pipeline run materialize`: keeps a table up to date from a stream."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from postbus.cli import output
from postbus.cli.options import StreamName
from postbus.cli.pipelines.launch import (
    Continuous,
    Master,
    MaxBad,
    Options,
    Remote,
    collect,
    prepared,
    run_app,
    shown,
    started,
)


@run_app.command("materialize")
def materialize(
    stream: StreamName,
    table: Annotated[
        str | None, typer.Option(help="The table, as name or schema.name. It is created if it does not exist.")
    ] = None,
    table_url: Annotated[
        str | None,
        typer.Option(help="The Postgres of the table: a URL, env:NAME or file:PATH. Without it, the stream's."),
    ] = None,
    to: Annotated[str | None, typer.Option(help="Or a folder for snapshots of Parquet files.")] = None,
    changes: Annotated[
        bool | None,
        typer.Option(
            "--changes", help="Data describes changes: it has a record and an action (insert, update or delete)."
        ),
    ] = None,
    source_table: Annotated[
        str | None,
        typer.Option(help="The stream is fed by a source: mirror this table of it, such as public.orders."),
    ] = None,
    history: Annotated[
        bool | None, typer.Option("--history", help="Keep every version, with valid_from, valid_to, is_current.")
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(help="The columns, such as 'id BIGINT, tags JSON'. Without it, those that messages have."),
    ] = None,
    bad_into: Annotated[str | None, typer.Option(help="The stream for messages that do not fit.")] = None,
    max_bad: MaxBad = None,
    batch: Annotated[int | None, typer.Option(min=1, help="The largest number of messages per step; 500,000.")] = None,
    every: Annotated[float | None, typer.Option(help="With --continuous, seconds to wait for more; 5.")] = None,
    consumer: Annotated[
        str | None, typer.Option(help="The name of the consumer that shows the lag; materialize-TABLE.")
    ] = None,
    allow_loss: Annotated[
        bool | None, typer.Option("--allow-loss", help="Continue even if messages were purged before they were read.")
    ] = None,
    again: Annotated[bool | None, typer.Option("--again", help="Empty the table and start over.")] = None,
    continuous: Continuous = False,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Keep a table with the latest message of each key. Each change is applied once, even after a restart.

    Example: postbus pipeline run materialize prices --table prices --schema 'cents INT'
    """
    given = {
        "table": table,
        "table_url": table_url,
        "to": to,
        "changes": changes,
        "source_table": source_table,
        "history": history,
        "schema": schema,
        "bad_into": bad_into,
        "max_bad": max_bad,
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

        done = materialize_stream(database, chosen, spark=spark, continuous=continuous, show=shown())
    applied = done.read - done.aside
    if output.as_json():
        output.emit_json({"applied": applied, **asdict(done)})
    else:
        output.emit_number(applied, f"applied {applied:,} messages of {stream}", name="applied")
    if done.aside:
        output.say(f"warning: {done.aside:,} messages do not fit; see why: postbus stream read {chosen.bad_into}")

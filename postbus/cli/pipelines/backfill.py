"""`postbus pipeline run backfill`: publishes the rows of a Postgres table to a stream."""

from __future__ import annotations

from typing import Annotated

import typer

from postbus.cli import output
from postbus.cli.options import StreamName
from postbus.cli.pipelines.launch import Master, MaxBad, Options, Remote, build, collect, run_app, shown, started


@run_app.command("backfill")
def backfill(
    stream: StreamName,
    table: Annotated[str | None, typer.Option(help="The table, such as shop.orders.")] = None,
    query: Annotated[str | None, typer.Option(help="Or a read-only query.")] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from", help="The Postgres that has it: a URL, env:NAME or file:PATH. Without it, the stream's."
        ),
    ] = None,
    pk: Annotated[
        str | None, typer.Option(help="The columns to split it by, such as customer,id. Without it, the primary key.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="The key, with columns in braces. Without it, the table's name and the primary key."),
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="The column with the data. Without it, the whole row as JSON.")
    ] = None,
    bad_into: Annotated[
        str | None,
        typer.Option(help="The stream for rows that cannot be published. Without it, the stream's name with -bad."),
    ] = None,
    max_bad: MaxBad = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="About how many rows to publish per transaction; 50,000.")
    ] = None,
    again: Annotated[
        bool | None, typer.Option("--again", help="Publish again, even if it was published before.")
    ] = None,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Publish the rows of a table or a query, read in parallel at one snapshot. Each is published once, even after a restart.

    Example: postbus pipeline run backfill customers --table shop.customers --from env:SHOP_URL
    """
    given = {
        "table": table,
        "query": query,
        "source": source,
        "pk": pk,
        "key": key,
        "data": data,
        "bad_into": bad_into,
        "max_bad": max_bad,
        "batch": batch,
        "again": again,
    }
    values = collect(given, options)
    if "pk" in values:
        written = values["pk"]
        values["pk"] = tuple(name.strip() for name in (written.split(",") if isinstance(written, str) else written))
    with started(stream, master, remote) as (spark, database):
        from postbus.pipelines import BackfillOptions, backfill_table

        chosen = build(BackfillOptions, stream, values)
        done = backfill_table(database, chosen, spark=spark, show=shown())
    output.emit_one(done)
    if done.bad:
        output.say(
            f"warning: {done.bad:,} of {done.messages + done.bad:,} rows went aside; see why: postbus stream read {done.bad_into}"
        )
    if done.ranges_left:
        output.say(f"{done.ranges_left:,} ranges are left; run it again to continue")
    elif not (done.messages or done.bad or again):
        output.say("nothing is left to publish; publishing the same rows again needs --again")

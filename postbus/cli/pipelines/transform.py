"""`postbus pipeline run transform`: transforms streams into a stream by SQL, Python or a declarative pipeline."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from postbus.cli import output
from postbus.cli.options import KeyPattern, StreamName
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
from postbus.model.errors import InvalidInput

if TYPE_CHECKING:
    from postbus.pipelines import TransformOptions
    from postbus.pipelines.transform.pipeline import Transformed

_OF_DECLARED: Final = {"pipeline", "consumer", "name"}


@run_app.command("transform")
def transform(
    stream: StreamName,
    into: Annotated[str | None, typer.Option(help="The stream to publish to.")] = None,
    also: Annotated[list[str] | None, typer.Option(help="Another stream to read; may be repeated.")] = None,
    sql: Annotated[str | None, typer.Option(help="A Spark SQL query, in which each stream is a table.")] = None,
    function: Annotated[
        str | None,
        typer.Option(help="A function from DataFrames to a DataFrame: package.module:name, or path/file.py:name."),
    ] = None,
    pipeline: Annotated[
        str | None, typer.Option(help="A declarative pipeline's spark-pipeline.yml, instead of the other options.")
    ] = None,
    data_schema: Annotated[
        str | None, typer.Option(help="The fields of data, such as 'customer STRING, quantity INT'.")
    ] = None,
    bad_into: Annotated[str | None, typer.Option(help="The stream for messages that do not fit the schema.")] = None,
    keep_bad: Annotated[
        bool | None,
        typer.Option(
            "--keep-bad", help="Pass such messages to the query, with null as data and their text in _corrupt."
        ),
    ] = None,
    watermark: Annotated[
        list[str] | None,
        typer.Option(
            help="How late messages may be: 'published_at 10 minutes', or 'data.at 1 hour' with window(at, …)."
        ),
    ] = None,
    max_bad: MaxBad = None,
    output_mode: Annotated[
        str | None, typer.Option(help="append (default), or update, which publishes changed rows again.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="Where the first run starts: earliest (default), latest, a seq or a time."),
    ] = None,
    key_pattern: KeyPattern = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="The largest number of messages per step; 1,000,000.")
    ] = None,
    every: Annotated[float | None, typer.Option(help="With --continuous, seconds between two steps; 1.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="The folder for Spark's checkpoints. Without it, one in the data directory.")
    ] = None,
    consumer: Annotated[
        str | None, typer.Option(help="The name of the consumer that shows the lag; transform-INTO.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="A name, to tell several such pipelines apart.")] = None,
    allow_loss: Annotated[
        bool | None, typer.Option("--allow-loss", help="Continue even if messages were purged before they were read.")
    ] = None,
    again: Annotated[bool | None, typer.Option("--again", help="Start over and publish everything again.")] = None,
    continuous: Continuous = False,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Transform streams into a stream. Each message is processed once, even after a restart.

    Example: postbus pipeline run transform orders --into large --sql "select key, data from orders where key like 'eu.%'"
    """
    given = {
        "into": into,
        "also": also,
        "sql": sql,
        "function": function,
        "pipeline": pipeline,
        "data_schema": data_schema,
        "bad_into": bad_into,
        "keep_bad": keep_bad,
        "watermark": watermark,
        "max_bad": max_bad,
        "output_mode": output_mode,
        "start": start,
        "key_pattern": key_pattern,
        "batch": batch,
        "every": every,
        "checkpoint": checkpoint,
        "consumer": consumer,
        "name": name,
        "allow_loss": allow_loss,
        "again": again,
    }
    values = collect(given, options)
    if "pipeline" in values:
        _run_declarative(stream, values, master, remote, continuous=continuous)
        return
    for each in ("also", "watermark"):
        if each in values:
            values[each] = (values[each],) if isinstance(values[each], str) else tuple(values[each])
    others = (values.get("into"), values.get("bad_into"), *values.get("also", ()))
    chosen = prepared("TransformOptions", stream, values)
    with started([stream, *(each for each in others if each)], master, remote) as (spark, database):
        from postbus.pipelines import transform_streams

        done = transform_streams(database, chosen, spark=spark, continuous=continuous, show=shown())
    _say(done, chosen)


def _say(done: Transformed, chosen: TransformOptions) -> None:
    """The summary, in which every message that was read is somewhere."""
    if output.as_json():
        output.emit_json({"transformed": done.read, **asdict(done)})
        return
    parts = [f"{done.published:,} published", f"{done.aside:,} aside", f"{done.late:,} late"]
    parts += [f"{done.filtered:,} filtered"] if done.filtered is not None else []
    output.emit_number(
        done.read, f"transformed {done.read:,} messages into {chosen.into}: {', '.join(parts)}", name="transformed"
    )
    if done.aside:
        output.say(f"warning: {done.aside:,} messages do not fit; see why: postbus stream read {chosen.bad_into}")
    if done.late:
        output.say(
            f"warning: {done.late:,} rows came too late for the watermark and were dropped; allow more delay by --watermark"
        )


def _run_declarative(
    stream: str, values: dict[str, Any], master: str | None, remote: str | None, *, continuous: bool
) -> None:
    wrong = sorted(values.keys() - _OF_DECLARED) + (["continuous"] if continuous else [])
    if wrong:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise InvalidInput(f"{flags} cannot be combined with --pipeline", "the files of the pipeline define it")
    chosen = prepared("DeclarativeOptions", stream, values)
    with started(stream, master, remote, served=chosen.specification().configuration) as (spark, database):
        from postbus.pipelines import run_declarative

        count = run_declarative(database, chosen, spark=spark, show=shown())
    output.emit_number(count, f"transformed {count:,} messages by {chosen.pipeline}", name="transformed")

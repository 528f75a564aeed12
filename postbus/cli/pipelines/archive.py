"""`postbus pipeline run archive|replay|compact`: a stream's archive."""

from __future__ import annotations

from typing import Annotated

import typer

from postbus.cli import output
from postbus.cli.options import KeyPattern, StreamName, seconds, size
from postbus.cli.pipelines.launch import (
    Continuous,
    Master,
    Options,
    Remote,
    build,
    collect,
    prepared,
    run_app,
    shown,
    started,
)
from postbus.model.errors import Conflict


@run_app.command("archive")
def archive(
    stream: StreamName,
    to: Annotated[
        str | None, typer.Option(help="The folder of the archive: a local path, or one that Spark can reach.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="The largest number of messages per step; 1,000,000.")
    ] = None,
    key_tokens: Annotated[
        int | None, typer.Option(min=0, max=5, help="How many tokens of the key become folders below the date; 0.")
    ] = None,
    every: Annotated[float | None, typer.Option(help="With --continuous, seconds to wait for more; 10.")] = None,
    allow_loss: Annotated[
        bool | None,
        typer.Option("--allow-loss", help="Continue even if messages were purged before they were archived."),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="parquet, or delta, which makes the folder a Delta table for good.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Archive nothing; check that archive and log together are complete.")
    ] = False,
    continuous: Continuous = False,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Archive a stream to Parquet files by date. The stream keeps messages until they are archived.

    Example: postbus pipeline run archive orders --to /lake
    """
    if verify:
        _verify(stream, master, remote)
        return
    given = {
        "to": to,
        "batch": batch,
        "key_tokens": key_tokens,
        "every": every,
        "allow_loss": allow_loss,
        "format": format,
    }
    chosen = prepared("ArchiveOptions", stream, collect(given, options))
    with started(stream, master, remote) as (spark, database):
        from postbus.pipelines import archive_stream

        count = archive_stream(database, chosen, spark=spark, continuous=continuous, show=shown())
    output.emit_number(count, f"archived {count:,} messages of {stream}", name="archived")


@run_app.command("replay")
def replay(
    stream: StreamName,
    into: Annotated[str | None, typer.Option(help="The stream to publish to.")] = None,
    consumer: Annotated[str | None, typer.Option(help="Or the consumer of the stream to deliver to.")] = None,
    start: Annotated[str | None, typer.Option("--from", help="A seq, a time, or 10m for ten minutes ago.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="A seq (inclusive), a time, or a duration ago.")] = None,
    key_pattern: KeyPattern = None,
    rate: Annotated[float | None, typer.Option(help="How many messages per second at most.")] = None,
    batch: Annotated[
        int | None, typer.Option(min=1, help="The largest number of messages per transaction; 100,000.")
    ] = None,
    again: Annotated[bool | None, typer.Option("--again", help="Replay again, even if it was replayed before.")] = None,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Replay messages from archive and log into a stream or to one consumer. Each is replayed once, even after a restart.

    Example: postbus pipeline run replay orders --into orders-again --from 2026-01-31T00:00Z --filter 'orders.eu.>'
    """
    given = {
        "into": into,
        "consumer": consumer,
        "start": start,
        "end": end,
        "key_pattern": key_pattern,
        "rate": rate,
        "batch": batch,
        "again": again,
    }
    values = collect(given, options)
    with started(stream, master, remote) as (spark, database):
        from postbus.pipelines import ReplayOptions, replay_stream

        chosen = build(ReplayOptions, stream, values)
        count = replay_stream(database, chosen, spark=spark, show=shown())
    text = f"replayed {count:,} messages of {stream}"
    if consumer := values.get("consumer"):
        text += f" to {consumer}; what it has not read yet, it still gets from the log"
    if count == 0 and not again:
        text += "; replaying the same messages again needs --again"
    output.emit_number(count, text, name="replayed")


@run_app.command("compact")
def compact(
    stream: StreamName,
    file_bytes: Annotated[str | None, typer.Option(help="The target size of files, such as 128M.")] = None,
    keep: Annotated[
        str | None, typer.Option(help="How long messages stay in the archive, such as 730d. Without it, indefinitely.")
    ] = None,
    grace: Annotated[str | None, typer.Option(help="How long replaced files stay for running readers; 1d.")] = None,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Compact an archive: merge small files, expire old messages, delete files that are no longer used.

    Example: postbus pipeline run compact orders --keep 730d
    """
    values = collect({"file_bytes": file_bytes, "keep": keep, "grace": grace}, options)
    for name in ("keep", "grace"):
        if name in values:
            values[name] = seconds(str(values[name]))
    if "file_bytes" in values:
        values["file_bytes"] = size(str(values["file_bytes"]))
    with started(stream, master, remote) as (spark, database):
        from postbus.pipelines import CompactionOptions, compact_archive

        chosen = build(CompactionOptions, stream, values)
        done = compact_archive(database, chosen, spark=spark, show=shown())
    output.emit_one(done)


def _verify(stream: str, master: str | None, remote: str | None) -> None:
    with started(stream, master, remote) as (spark, database):
        from postbus.pipelines import verify_archive

        found = verify_archive(database, stream, spark=spark)
    output.emit_one(found)
    if found.problems:
        raise Conflict(f"the archive of {stream} is not complete: {found.problems[0]}")
    output.say(f"archive and log of {stream} are complete: {found.archived:,} archived, {found.live:,} live")

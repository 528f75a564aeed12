"""`postbus pipeline run report`: reports on streams and consumers, as a page and as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from postbus.cli import output
from postbus.cli.options import complete_stream, seconds
from postbus.cli.pipelines.launch import Master, Options, Remote, collect, run_app, shown, started

_Streams = Annotated[
    list[str] | None,
    typer.Argument(metavar="STREAM", help="The streams; none for all.", autocompletion=complete_stream),
]


@run_app.command("report")
def report(
    streams: _Streams = None,
    out: Annotated[str | None, typer.Option(help="The file to write the page to; report.html.")] = None,
    open: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    tables: Annotated[str | None, typer.Option(help="Also write the figures to files in this folder.")] = None,
    format: Annotated[
        str | None, typer.Option(help="The format of these files: parquet (default), csv or json.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--from", help="The start of the report: a time, or 7d for the last 7 days.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", help="The end of the report.")] = None,
    bucket: Annotated[
        str | None,
        typer.Option(help="The time that a bar of a chart covers, such as 1h. Without it, chosen automatically."),
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, max=1000, help="How many keys to list; 20.")] = None,
    archive: Annotated[
        bool | None, typer.Option("--archive/--no-archive", help="Also read archives, where they exist.")
    ] = None,
    options: Options = None,
    master: Master = None,
    remote: Remote = None,
) -> None:
    """Report on streams and their consumers: throughput, latency, redeliveries, dead letters, hot keys, lag, growth.

    Example: postbus pipeline run report orders --from 7d --out report.html --open
    """
    given = {
        "out": out,
        "tables": tables,
        "format": format,
        "from": start,
        "to": end,
        "bucket": bucket,
        "top": top,
        "archive": archive,
    }
    values = collect(given, options)
    for flag, name in (("from", "start"), ("to", "end")):
        if flag in values:
            values[name] = str(values.pop(flag))
    if "bucket" in values:
        values["bucket"] = seconds(str(values["bucket"]))
    from postbus.pipelines import ReportOptions

    chosen = ReportOptions(streams=tuple(streams or ()), **values)
    chosen.check()
    with started(streams or [], master, remote) as (spark, database):
        from postbus.pipelines import report_streams

        found = report_streams(database, chosen, spark=spark, show=shown())
    if found is None:
        output.say("stopped; no report was written")
        raise typer.Exit(130)
    path = Path(chosen.out or "").expanduser().absolute()
    count = len(found.streams)
    if output.as_json():
        output.emit_json({"report": str(path), "tables": chosen.tables, "messages": found.messages, "streams": count})
    else:
        typer.echo(path)
        output.say(f"reported on {found.messages:,} messages of {count} stream{'s' if count != 1 else ''}")
    if open:
        _show(path)


def _show(path: Path) -> None:
    import webbrowser

    if not webbrowser.open(path.as_uri()):
        output.say(f"no browser could be opened; the page is {path}")

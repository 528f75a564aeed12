"""`postbus schedule`: messages that wait for their time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from postbus.cli import output
from postbus.cli.consumers import Stream
from postbus.cli.options import DataDir, Json, Url, open_bus, seconds

app = typer.Typer(help="Scheduled messages: list, cancel, move.", no_args_is_help=True)
Ids = Annotated[list[int], typer.Argument(help="The numbers under which they are scheduled.")]


@app.command("ls")
def ls(
    stream: Stream,
    key_pattern: Annotated[str | None, typer.Option("--filter", help="A key pattern.")] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=10_000)] = 100,
    url: Url = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """List scheduled messages, the next one first.

    Example: postbus schedule ls orders
    """
    with open_bus(url, data_dir) as bus:
        found = bus.list_scheduled(stream, key_pattern=key_pattern, max_messages=count)
    output.emit(found, ("id", "deliver_at", "key", "data"), as_json=as_json, empty="nothing is scheduled")


@app.command("cancel")
def cancel(stream: Stream, ids: Ids, url: Url = None, data_dir: DataDir = None) -> None:
    """Cancel scheduled messages.

    Example: postbus schedule cancel orders 17
    """
    with open_bus(url, data_dir) as bus:
        count = bus.cancel(stream, ids)
    typer.echo(count)
    output.say(f"cancelled {count} of {len(ids)}")


@app.command("move")
def move(
    stream: Stream,
    ids: Ids,
    deliver_in: Annotated[str, typer.Option("--in", help="From now, such as 10m; 0s publishes at once.")],
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Give scheduled messages another time.

    Example: postbus schedule move orders 17 --in 10m
    """
    with open_bus(url, data_dir) as bus:
        count = bus.reschedule(stream, ids, datetime.now(UTC) + timedelta(seconds=seconds(deliver_in) or 0))
    typer.echo(count)
    output.say(f"moved {count} of {len(ids)}")

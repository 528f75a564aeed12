"""`postbus schedule`: what is scheduled, again and again or once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postbus.cli import as_curl, output, standing
from postbus.cli.options import AnyStream, KeyPattern, StreamName, open_bus, seconds
from postbus.cli.recurring import app, shown

if TYPE_CHECKING:
    from postbus.model.overview import StreamOverview

_GONE = "the others were published or cancelled before"
Ids = Annotated[list[int], typer.Argument(help="The ids of scheduled messages, as printed when they were sent.")]


@app.command("ls")
def ls(
    stream: AnyStream = None,
    key_pattern: KeyPattern = None,
    count: Annotated[
        int, typer.Option("-n", "--max-messages", min=1, max=10_000, help="The largest number of results.")
    ] = 100,
) -> None:
    """List recurring schedules, then messages that are scheduled once; without a stream, how many each stream has.

    Example: postbus schedule ls orders
    """
    with open_bus() as bus:
        recurring, once = as_curl.all_of(
            lambda: bus.schedules.list_all(stream) if key_pattern is None else [],
            lambda: (
                bus.overview(sizes=True)
                if stream is None
                else bus.list_scheduled(stream, key_pattern=key_pattern, max_messages=count)
            ),
        )
    if recurring:
        output.emit(recurring, ("stream", "name", "rule", "next", "last_run", "key", "data"), empty="", shown=shown)
    if stream is None:
        columns: tuple[str, ...] = ("name", "scheduled", "next_scheduled_at")
        _emit([each for each in once if each.scheduled], columns, recurring, shown=_stream)
    else:
        _emit(once, output.with_priority(("id", "deliver_at", "key", "data"), once), recurring)


def _emit(found: Sequence[Any], columns: Sequence[str], before: Sequence[Any], **more: Any) -> None:
    """Print a second list, if there is one or was no first."""
    if found and before and not output.as_json():
        typer.echo()
    if found or not before:
        output.emit(found, columns, empty="nothing is scheduled", **more)


@app.command("cancel")
def cancel(stream: StreamName, ids: Ids) -> None:
    """Cancel scheduled messages.

    Example: postbus schedule cancel orders 17
    """
    with open_bus() as bus:
        count = bus.cancel(stream, ids)
    output.emit_share("cancelled", count, len(ids), "message", others=_GONE, name="cancelled")


@app.command("move")
def move(
    stream: StreamName,
    ids: Ids,
    deliver_in: Annotated[str, typer.Option("--in", help="How long from now, such as 10m; 0s publishes at once.")],
) -> None:
    """Change the time of scheduled messages.

    Example: postbus schedule move orders 17 --in 10m
    """
    with open_bus() as bus:
        count = bus.reschedule(stream, ids, datetime.now(UTC) + timedelta(seconds=seconds(deliver_in) or 0))
    output.emit_share("moved", count, len(ids), "message", others=_GONE, name="moved")


def _stream(found: StreamOverview) -> dict[str, Any]:
    return {
        "name": found.name,
        "scheduled": standing.capped(found.scheduled or 0),
        "next_scheduled_at": found.next_scheduled_at,
    }

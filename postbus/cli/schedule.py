"""`postbus schedule`: scheduled messages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from postbus.cli import output, standing
from postbus.cli.global_options import Commands
from postbus.cli.options import AnyStream, KeyPattern, StreamName, open_bus, seconds

if TYPE_CHECKING:
    from postbus.model.overview import StreamOverview

app = Commands("Scheduled messages: list, cancel, reschedule.")
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
    """List scheduled messages, earliest first; without a stream, the streams that have some.

    Example: postbus schedule ls orders
    """
    with open_bus() as bus:
        if stream is None:
            streams = [each for each in bus.overview(sizes=True) if each.scheduled]
            output.emit(
                streams, ("name", "scheduled", "next_scheduled_at"), empty="nothing is scheduled", shown=_stream
            )
            return
        found = bus.list_scheduled(stream, key_pattern=key_pattern, max_messages=count)
    output.emit(found, ("id", "deliver_at", "key", "data"), empty="nothing is scheduled")


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

"""`postbus task`: redrives, discards, replays and moves in the background."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from postbus.cli import output
from postbus.cli.global_options import Commands
from postbus.cli.options import ConsumerName, StreamName, open_bus
from postbus.model.task import TaskInfo

app = Commands(
    "Tasks in the background: list, move, cancel. Others start with --background: postbus dead redrive, postbus dead discard."
)


@app.command("ls")
def list_tasks(
    stream: Annotated[str | None, typer.Argument(help="The stream; without it, those of all streams.")] = None,
) -> None:
    """List tasks: those that run, and those that ended within a week.

    Example: postbus task ls orders
    """
    columns = (
        "id",
        "stream",
        "consumer",
        "kind",
        "state",
        "done_count",
        "total_estimate",
        "rate",
        "noted_at",
        "last_error",
    )
    with open_bus() as bus:
        output.emit(bus.tasks.list_all(stream), columns, empty="no tasks", shown=_shown)


@app.command("move")
def move(
    stream: StreamName,
    consumer: ConsumerName,
    to: Annotated[
        str | None,
        typer.Option("--to", help="The stream that they go to; without it, the one whose dead letter each is."),
    ] = None,
    rate: Annotated[float | None, typer.Option("--rate", help="The largest number of messages per second.")] = None,
) -> None:
    """Start to move what a consumer could receive to another stream; each message is published there and acked here, at once.

    Example: postbus task move failed failed --to orders --rate 100
    """
    with open_bus() as bus:
        started(bus.tasks.move(stream, consumer, to_stream=to, rate=rate))


@app.command("cancel")
def cancel(stream: StreamName, id: Annotated[int, typer.Argument(help="The task's number.")]) -> None:
    """End a task. What it has moved stays moved.

    Example: postbus task cancel orders 7
    """
    with open_bus() as bus:
        was_running = bus.tasks.cancel(stream, id)
    output.say(f"cancelled task {id}" if was_running else f"task {id} had ended before")
    if not was_running:
        raise typer.Exit(1)


def started(id: int) -> None:
    """Say that a task has begun."""
    output.emit_number(id, f"task {id} goes on in the background; see: postbus task ls", name="id")


def _shown(found: TaskInfo) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__dataclass_fields__}

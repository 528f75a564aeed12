"""`postbus channel`: limits of channels, and why their messages wait."""

from __future__ import annotations

from typing import Annotated

import typer

from postbus.cli import output
from postbus.cli.global_options import Commands
from postbus.cli.options import StreamName, open_bus
from postbus.model.channel import ChannelLimits, ChannelState

app = Commands("Channels: limits for each tenant of a stream, and why messages wait.")

Pattern = Annotated[str, typer.Argument(help='The name of a channel, or a pattern: "*" is one token, ">" the rest.')]


@app.command("ls")
def list_channels(
    stream: StreamName,
    consumer: Annotated[
        str | None, typer.Argument(help="Say how the channels do for this consumer, and why messages wait.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="With a consumer: how many channels.")] = 100,
) -> None:
    """List the limits of a stream's channels; with a consumer, the channels that wait or are in flight.

    Example: postbus channel ls orders billing
    """
    with open_bus() as bus:
        if consumer is None:
            output.emit(
                bus.channels.list_all(stream), tuple(ChannelLimits.__dataclass_fields__), empty="no limits of channels"
            )
        else:
            output.emit(
                bus.channels.states(stream, consumer, max_channels=limit),
                tuple(ChannelState.__dataclass_fields__),
                empty="no channel waits for its turn",
            )


@app.command("set")
def set_channel(
    stream: StreamName,
    pattern: Pattern,
    max_concurrency: Annotated[
        int | None, typer.Option("--max-concurrency", help="How many messages of a channel may be in flight.")
    ] = None,
    max_rate: Annotated[int | None, typer.Option("--max-rate", help="How many messages it gets in each --per.")] = None,
    per: Annotated[float, typer.Option("--per", help="The time of --max-rate, in seconds.")] = 1,
    burst: Annotated[int, typer.Option("--burst", help="How many it gets at once after a pause.")] = 1,
    weight: Annotated[int, typer.Option("--weight", help="How much of a turn it has, where a consumer is fair.")] = 1,
    paused: Annotated[bool, typer.Option("--paused", help="It gets none.")] = False,
) -> None:
    """Set the limits of channels, in place of those that the pattern had.

    Example: postbus channel set orders '*' --max-concurrency 5
    """
    with open_bus() as bus:
        bus.channels.set(
            stream,
            pattern,
            max_concurrency=max_concurrency,
            max_rate=max_rate,
            per=per,
            burst=burst,
            weight=weight,
            paused=paused,
        )
    output.say(f"set the limits of {pattern} in {stream}")


@app.command("rm")
def remove_channel(stream: StreamName, pattern: Pattern) -> None:
    """Remove the limits of a pattern.

    Example: postbus channel rm orders acme
    """
    with open_bus() as bus:
        had_limits = bus.channels.remove(stream, pattern)
    output.say(f"removed the limits of {pattern}" if had_limits else f"{pattern} had no limits")
    if not had_limits:
        raise typer.Exit(1)


@app.command("pause")
def pause_channel(stream: StreamName, pattern: Pattern) -> None:
    """Give out no messages of channels, until they are resumed.

    Example: postbus channel pause orders acme
    """
    with open_bus() as bus:
        bus.channels.pause(stream, pattern)
    output.say(f"paused {pattern}")


@app.command("resume")
def resume_channel(stream: StreamName, pattern: Pattern) -> None:
    """Let paused channels go on.

    Example: postbus channel resume orders acme
    """
    with open_bus() as bus:
        was_paused = bus.channels.resume(stream, pattern)
    output.say(f"resumed {pattern}" if was_paused else f"{pattern} was not paused")
    if not was_paused:
        raise typer.Exit(1)

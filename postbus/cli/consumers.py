"""`postbus consumer`: consumers. Commands about deliveries are in deliveries.py."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from postbus.cli import as_curl, consumer_settings, deliveries, options, output
from postbus.cli.consumer_settings import Start
from postbus.cli.global_options import Commands, current
from postbus.cli.options import (
    ConsumerName,
    ExistOk,
    StreamName,
    Yes,
    complete_stream,
    confirm,
    names,
    open_bus,
    open_consumer,
)
from postbus.cli.setting_options import with_settings
from postbus.model.settings import ConsumerChanges, ConsumerSettings

MaybeStreamName = Annotated[str | None, typer.Argument(help="The stream's name.", autocompletion=complete_stream)]
MaybeNewName = Annotated[str | None, typer.Argument(help="Its name: letters, digits, _ and -.")]

app = Commands("Consumers: add, list, show, change, receive, seek.")


@app.command("add")
@with_settings(ConsumerSettings, is_new=True)
def add(
    settings: dict[str, Any],
    stream: MaybeStreamName = None,
    consumer: MaybeNewName = None,
    start: Start = None,
    exist_ok: ExistOk = False,
    defaults: Annotated[bool, typer.Option("--defaults", help="Ask nothing; take the defaults.")] = False,
) -> None:
    """Create a consumer. On a terminal it asks for names that are missing and, without settings, for these.

    Example: postbus consumer add orders billing --filter 'orders.>' --max-deliver 5
    """
    settings |= consumer_settings.start(start)
    with open_bus() as bus:
        asks = not settings and not defaults and options.can_ask() and not current().as_curl
        if asks or stream is None or consumer is None:
            stream, consumer = consumer_settings.names(bus, stream, consumer)
        if asks:
            settings = consumer_settings.ask()
        created = bus.create_consumer(stream, consumer, exist_ok=exist_ok, **settings)
        if output.as_json():
            output.emit_json(created.info())
            return
    output.say(f"created consumer {consumer} of stream {stream}; receive with: postbus receive {stream} {consumer}")


@app.command("ls")
def ls(stream: StreamName) -> None:
    """List the consumers of a stream.

    Example: postbus consumer ls orders
    """
    columns = ("name", "order", "ack_wait", "max_ack_pending", "max_deliver", "filter_key_pattern", "paused")
    with open_bus() as bus:
        found = bus.list_consumers(stream)
    output.emit(found, columns, empty=f"no consumers yet; create one: postbus consumer add {stream} NAME")


@app.command("info")
def info(stream: StreamName, consumer: ConsumerName) -> None:
    """Show a consumer's settings and its progress.

    Example: postbus consumer info orders billing
    """
    with open_consumer(stream, consumer) as found:
        settings, stats = as_curl.all_of(found.info, found.stats)
    if output.as_json():
        output.emit_json({"settings": settings, "stats": stats})
        return
    output.emit_one(settings)
    output.emit_one(stats, leave_out=("partitions",))


@app.command("edit")
@with_settings(ConsumerChanges)
def edit(
    stream: StreamName,
    consumer: ConsumerName,
    settings: dict[str, Any],
    unset: Annotated[list[str] | None, typer.Option(help="A setting to put back to none; may be repeated.")] = None,
) -> None:
    """Change settings of a consumer.

    Example: postbus consumer edit orders billing --ack-wait 2m --unset max-deliver
    """
    with open_consumer(stream, consumer) as found:
        found.alter(**settings, unset=names(unset))
        if output.as_json():
            output.emit_json(found.info())
            return
    output.say(f"changed consumer {consumer}")


@app.command("rm")
def rm(stream: StreamName, consumer: ConsumerName, yes: Yes = False) -> None:
    """Remove a consumer with its position and dead letters.

    Example: postbus consumer rm orders billing --yes
    """
    with open_consumer(stream, consumer) as found:
        if not yes and not current().as_curl:
            found.info()
            confirm(f"Remove consumer {consumer} of {stream}?", yes)
        found.drop()
    output.done(f"removed consumer {consumer}", removed=consumer)


for name, function in deliveries.COMMANDS.items():
    app.command(name)(function)


@app.command("pause")
def pause(stream: StreamName, consumer: ConsumerName) -> None:
    """Stop delivering messages until the consumer is resumed.

    Example: postbus consumer pause orders billing
    """
    with open_consumer(stream, consumer) as found:
        found.pause()
    output.done(f"paused consumer {consumer}", paused=True)


@app.command("resume")
def resume(stream: StreamName, consumer: ConsumerName) -> None:
    """Deliver messages again after a pause.

    Example: postbus consumer resume orders billing
    """
    with open_consumer(stream, consumer) as found:
        found.resume()
    output.done(f"resumed consumer {consumer}", paused=False)

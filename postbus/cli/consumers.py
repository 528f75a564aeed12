"""`postbus consumer`: consumers. Commands about deliveries are in deliveries.py."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from postbus.cli import as_curl, consumer_push, consumer_settings, deliveries, options, output, standing
from postbus.cli.consumer_settings import Start
from postbus.cli.global_options import Commands, current
from postbus.cli.options import (
    AnyStream,
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
app.add_typer(consumer_push.app, name="push")


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
    output.say(
        f"{output.made(f'consumer {consumer} of stream {stream}', exist_ok)}; receive with: postbus receive {stream} {consumer}"
    )


@app.command("ls")
def ls(stream: AnyStream = None) -> None:
    """List consumers and their backlogs: of a stream, or of all.

    Example: postbus consumer ls orders
    """
    empty = f"no consumers yet; create one: postbus consumer add {stream or 'STREAM'} NAME"
    with open_bus() as bus:
        if stream is None:
            everywhere = ("stream", *standing.CONSUMER_COLUMNS)
            output.emit(bus.consumer_overview(), everywhere, empty=empty, shown=standing.consumer)
            return
        found, settings = as_curl.all_of(lambda: bus.consumer_overview(stream), lambda: bus.list_consumers(stream))
    by_name = {each.name: asdict(each) for each in settings}
    rows = [by_name.get(each.name, {}) | asdict(each) for each in found]
    columns = (*standing.CONSUMER_COLUMNS, "ack_wait", "max_deliver", "filter_key_pattern")
    output.emit([each for each in rows if "ack_wait" in each], columns, empty=empty, shown=standing.consumer)


@app.command("info")
def info(stream: StreamName, consumer: ConsumerName) -> None:
    """Show where a consumer stands, and its settings.

    Example: postbus consumer info orders billing
    """
    with open_consumer(stream, consumer) as found:
        settings, stats = as_curl.all_of(found.info, found.stats)
    standing.emit_consumer(settings, stats)


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

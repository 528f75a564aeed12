"""`postbus consumer`: consumers. What they do with deliveries is in deliveries.py."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from postbus.cli import as_curl, consumer_settings, deliveries, output
from postbus.cli.consumer_settings import (
    AckWait,
    Backoff,
    ExpireAfter,
    FilterData,
    FilterHeader,
    FilterHeaderNot,
    FilterKey,
    KeepHistory,
    KeepUnread,
    MaxAckPending,
    MaxDeliver,
    MaxPerKey,
    MaxWaiting,
    OnDead,
    OnExpired,
    Order,
    RetainDead,
    backoff,
    filter_of,
    given,
)
from postbus.cli.global_options import Commands, current
from postbus.cli.options import ConsumerName, NewName, StreamName, Yes, confirm, names, open_bus, open_consumer, seconds

app = Commands("Consumers: add, list, look at, change, receive, move.")


@app.command("add")
def add(
    stream: StreamName,
    consumer: NewName,
    order: Order = None,
    filter_key: FilterKey = None,
    filter_header: FilterHeader = None,
    filter_header_not: FilterHeaderNot = None,
    filter_data: FilterData = None,
    start: Annotated[str | None, typer.Option("--from", help="earliest, latest, a seq, a time, or 10m.")] = None,
    ack_wait: AckWait = None,
    max_ack_pending: MaxAckPending = None,
    max_deliver: MaxDeliver = None,
    delays: Backoff = None,
    retain_dead: RetainDead = None,
    max_per_key: MaxPerKey = None,
    max_waiting: MaxWaiting = None,
    on_dead: OnDead = None,
    on_expired: OnExpired = None,
    keep_unread: KeepUnread = None,
    expire_after: ExpireAfter = None,
    keep_history: KeepHistory = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="Ask nothing.")] = False,
) -> None:
    """Create a consumer. Without settings, on a terminal, it asks for them.

    Example: postbus consumer add orders billing --filter 'orders.>' --max-deliver 5
    """
    settings = given(
        order=order,
        filter=filter_of(filter_key, filter_header, filter_header_not, filter_data),
        ack_wait=seconds(ack_wait),
        max_ack_pending=max_ack_pending,
        max_deliver=max_deliver,
        backoff=backoff(delays),
        retain_dead=seconds(retain_dead),
        max_per_key=max_per_key,
        max_waiting=max_waiting,
        on_dead=on_dead,
        on_expired=on_expired,
        keep_unread=keep_unread,
        expire_after=seconds(expire_after),
        keep_history=seconds(keep_history),
        **consumer_settings.start(start),
    )
    with open_bus() as bus:
        if not settings and not defaults and sys.stdin.isatty():
            with as_curl.preparing():
                bus.list_consumers(stream)  # A stream that does not exist is said before anything is asked.
            settings = consumer_settings.ask()
        created = bus.create_consumer(stream, consumer, **settings)
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
    """Settings of a consumer, and where it stands.

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
def edit(
    stream: StreamName,
    consumer: ConsumerName,
    filter_key: FilterKey = None,
    filter_header: FilterHeader = None,
    filter_header_not: FilterHeaderNot = None,
    filter_data: FilterData = None,
    ack_wait: AckWait = None,
    max_ack_pending: MaxAckPending = None,
    max_deliver: MaxDeliver = None,
    delays: Backoff = None,
    retain_dead: RetainDead = None,
    max_per_key: MaxPerKey = None,
    max_waiting: MaxWaiting = None,
    on_dead: OnDead = None,
    on_expired: OnExpired = None,
    keep_unread: KeepUnread = None,
    expire_after: ExpireAfter = None,
    keep_history: KeepHistory = None,
    unset: Annotated[list[str] | None, typer.Option(help="A setting to put back to none; may be repeated.")] = None,
) -> None:
    """Change settings of a consumer.

    Example: postbus consumer edit orders billing --ack-wait 2m --unset max-deliver
    """
    with open_consumer(stream, consumer) as found:
        found.alter(
            filter=filter_of(filter_key, filter_header, filter_header_not, filter_data),
            ack_wait=seconds(ack_wait),
            max_ack_pending=max_ack_pending,
            max_deliver=max_deliver,
            backoff=backoff(delays),
            retain_dead=seconds(retain_dead),
            max_per_key=max_per_key,
            max_waiting=max_waiting,
            on_dead=on_dead,  # type: ignore[arg-type]
            on_expired=on_expired,  # type: ignore[arg-type]
            keep_unread=keep_unread,
            expire_after=seconds(expire_after),
            keep_history=seconds(keep_history),
            unset=names(unset),
        )
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
    """Give no more messages until resume.

    Example: postbus consumer pause orders billing
    """
    with open_consumer(stream, consumer) as found:
        found.pause()
    output.done(f"paused consumer {consumer}", paused=True)


@app.command("resume")
def resume(stream: StreamName, consumer: ConsumerName) -> None:
    """Go on after pause.

    Example: postbus consumer resume orders billing
    """
    with open_consumer(stream, consumer) as found:
        found.resume()
    output.done(f"resumed consumer {consumer}", paused=False)

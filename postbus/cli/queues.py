"""`postbus queue`: queues. A queue is a stream that keeps messages until they are acked, and its one consumer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from postbus.cli import as_curl, deliveries, messages, output, standing
from postbus.cli.consumer_settings import AckWait
from postbus.cli.global_options import Commands, current
from postbus.cli.options import ExistOk, NewName, Yes, confirm, open_bus
from postbus.cli.setting_options import with_settings
from postbus.model.errors import InvalidInput
from postbus.model.settings import ConsumerSettings

app = Commands("Queues: add, list, show, remove, send, receive, ack.")


def complete_queue(ctx: typer.Context, incomplete: str) -> list[str]:
    from postbus.cli import completion

    return completion.queues(ctx.params, incomplete)


QueueName = Annotated[str, typer.Argument(help="The queue's name.", autocompletion=complete_queue)]


@app.command("add")
@with_settings(ConsumerSettings, is_new=True, defaults={"order": "none"})
def add(
    queue: NewName,
    settings: dict[str, Any],
    partitions: Annotated[
        int, typer.Option(help="1 is first in, first out; with more, many receivers work at once.")
    ] = 1,
    data_type: Annotated[str, typer.Option("--type", help="What messages hold: json, text or bytes.")] = "json",
    channel_tokens: Annotated[
        int | None, typer.Option(help="How many leading tokens of a key name its channel (tenant).")
    ] = None,
    exist_ok: ExistOk = False,
) -> None:
    """Create a queue.

    Example: postbus queue add emails --max-deliver 5 --backoff 1s,10s,1m
    """
    common: dict[str, Any] = {
        "partitions": partitions,
        "data_type": data_type,
        "channel_tokens": channel_tokens,
        "exist_ok": exist_ok,
    }
    with open_bus() as bus:
        if current().as_curl:
            as_curl.all_of(
                lambda: bus.create_stream(queue, **common, until_acked=True),
                lambda: bus.create_consumer(queue, queue, exist_ok=exist_ok, **{"order": "none", **settings}),
            )
        created = bus.create_queue(queue, **common, **settings)
        if output.as_json():
            output.emit_json(created.info())
            return
    output.say(f"{output.made(f'queue {queue}', exist_ok)}; send with: postbus queue send {queue} DATA")


@app.command("ls")
def ls() -> None:
    """List queues and their backlogs.

    Example: postbus queue ls
    """
    with open_bus() as bus:
        streams, consumers = as_curl.all_of(bus.list_streams, bus.consumer_overview)
    built_in = {each.stream: asdict(each) for each in consumers if each.stream == each.name}
    found = [asdict(info) | built_in[info.name] for info in streams if info.until_acked and info.name in built_in]
    columns = (
        "name",
        "backlog",
        "in_flight",
        "waiting",
        "dead",
        "scheduled",
        "bytes",
        "data_type",
        "partitions",
        "paused",
    )
    output.emit(found, columns, empty="no queues yet; create one: postbus queue add emails", shown=standing.consumer)


@app.command("info")
def info(queue: QueueName) -> None:
    """Show where a queue stands, and its settings.

    Example: postbus queue info emails
    """
    with open_bus() as bus:
        found = bus.consumer(queue, queue)
        settings, stats, stream = as_curl.all_of(found.info, found.stats, lambda: bus.stream_info(queue))
    more = {"scheduled": stream.scheduled, "next_scheduled_at": stream.next_scheduled_at}
    standing.emit_consumer(settings, stats, more=more)


@app.command("rm")
def rm(queue: QueueName, yes: Yes = False) -> None:
    """Remove a queue with all its messages.

    Example: postbus queue rm emails --yes
    """
    with open_bus() as bus:
        if not yes and not current().as_curl:
            count = standing.messages(bus.stream_info(queue).message_estimate)
            confirm(f"Remove queue {queue} with {count} messages?", yes)
        bus.queue(queue).drop()
    output.done(f"removed queue {queue}", removed=queue)


@app.command("send")
def send(
    queue: QueueName,
    data: messages.Data = None,
    key: Annotated[str | None, typer.Option("--key", help="A key, for order or filters.")] = None,
    file: messages.File = None,
    skip: messages.Skip = 0,
    header: messages.Header = None,
    delay: messages.Delay = None,
    ttl: messages.Ttl = None,
    dedup_id: messages.DedupId = None,
    priority: messages.Priority = 4,
) -> None:
    """Put a message into a queue, or a file of them.

    Example: postbus queue send emails '{"to": "ada@example.com"}'
    """
    if data is None and file is None:
        raise InvalidInput("there is no data", f"""postbus queue send {queue} '{{"to": "ada@example.com"}}'""")
    messages.send(
        queue, key or ("-" if file is None else None), data, file, skip, header, delay, ttl, dedup_id, priority
    )


@app.command("receive")
def receive(
    queue: QueueName,
    count: Annotated[
        int | None, typer.Option("-n", "--max-messages", min=1, max=10_000, help="The largest number of results.")
    ] = None,
    wait: deliveries.Wait = "0s",
    ack: deliveries.Ack = False,
    follow: deliveries.Follow = False,
    ack_wait: AckWait = None,
) -> None:
    """Receive messages of a queue. Without --ack they are leased: ack or nack them with their ack ids.

    Example: postbus queue receive emails --follow --ack
    """
    deliveries.receive(queue, queue, count, wait, ack, follow, ack_wait)


@app.command("ack")
def ack(queue: QueueName, ack_ids: deliveries.AckIds) -> None:
    """Ack deliveries: the queue removes their messages.

    Example: postbus queue ack emails 1f0c9a7be2d34c55-17
    """
    deliveries.ack(queue, queue, ack_ids)


@app.command("nack")
def nack(
    queue: QueueName,
    ack_ids: deliveries.AckIds,
    delay: deliveries.Delay = None,
    reason: deliveries.Reason = None,
) -> None:
    """Nack deliveries: their messages are delivered again.

    Example: postbus queue nack emails 1f0c9a7be2d34c55-17 --delay 1m
    """
    deliveries.nack(queue, queue, ack_ids, delay, reason)


@app.command("defer")
def defer(
    queue: QueueName,
    ack_ids: deliveries.AckIds,
    delay: deliveries.DeferDelay = None,
    until: deliveries.Until = None,
    state: deliveries.SavedState = None,
) -> None:
    """Defer deliveries: their messages come back later, with a saved state. This counts as no attempt.

    Example: postbus queue defer emails 1f0c9a7be2d34c55-17 --delay 10m --state '{"page": 7}'
    """
    deliveries.defer(queue, queue, ack_ids, delay, until, state)

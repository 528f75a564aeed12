"""`postbus consumer`: consumers, and receiving by hand."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer

from postbus.cli import output
from postbus.cli.options import DataDir, Json, Url, Yes, confirm, open_bus, open_consumer, pairs, position, seconds
from postbus.model.consumer import Exponential, Filter
from postbus.model.errors import InvalidInput

app = typer.Typer(help="Consumers: add, list, look at, change, remove, receive, settle, move.", no_args_is_help=True)
Stream = Annotated[str, typer.Argument(help="The stream's name.")]
Consumer = Annotated[str, typer.Argument(help="The consumer's name.")]
AckIds = Annotated[list[str], typer.Argument(help="The ack ids that receive printed.")]
FilterKey = Annotated[str | None, typer.Option("--filter", help="A key pattern, such as 'orders.>'.")]
FilterHeader = Annotated[list[str] | None, typer.Option(help="NAME=VALUE that a message must have; may be repeated.")]
FilterHeaderNot = Annotated[list[str] | None, typer.Option(help="NAME=VALUE that a message must not have.")]
FilterData = Annotated[str | None, typer.Option(help="A JSON path, such as '$.amount > 100'.")]
AckWait = Annotated[str | None, typer.Option(help="How long a delivery is leased, such as 30s.")]
MaxAckPending = Annotated[int | None, typer.Option(help="How many messages may be in flight.")]
MaxDeliver = Annotated[int | None, typer.Option(help="How many deliveries before a message is dead.")]
Backoff = Annotated[str | None, typer.Option(help="Delays after failures: 1s,10s,1m; or 'exponential'.")]


@app.command("add")
def add(
    stream: Stream,
    consumer: Consumer,
    order: Annotated[str | None, typer.Option(help="key (the default), none or partition.")] = None,
    ack_wait: AckWait = None,
    max_ack_pending: MaxAckPending = None,
    max_deliver: MaxDeliver = None,
    backoff: Backoff = None,
    filter_key: FilterKey = None,
    filter_header: FilterHeader = None,
    filter_header_not: FilterHeaderNot = None,
    filter_data: FilterData = None,
    start: Annotated[str | None, typer.Option("--from", help="earliest, latest, a seq, a time, or 10m.")] = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="Ask nothing.")] = False,
    url: Url = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Create a consumer. Without settings, on a terminal, it asks for them.

    Example: postbus consumer add orders billing --filter 'orders.>' --max-deliver 5
    """
    given: dict[str, Any] = {
        "order": order,
        "ack_wait": seconds(ack_wait),
        "max_ack_pending": max_ack_pending,
        "max_deliver": max_deliver,
        "backoff": _backoff(backoff),
        "filter": _filter(filter_key, filter_header, filter_header_not, filter_data),
        **_start(start),
    }
    settings = {name: value for name, value in given.items() if value is not None}
    if not settings and not defaults and sys.stdin.isatty():
        settings = _ask()
    with open_bus(url, data_dir) as bus:
        created = bus.create_consumer(stream, consumer, **settings)
        if as_json:
            output.emit_json(created.info())
    output.say(f"created consumer {consumer} of stream {stream}; receive with: postbus receive {stream} {consumer}")


def _ask() -> dict[str, Any]:
    """Walk through the settings; Enter takes the default."""
    order = typer.prompt("Order (key, none, partition)", default="key", err=True)
    key = typer.prompt(
        "Only keys that match (such as orders.>, empty for all)", default="", show_default=False, err=True
    )
    wait = typer.prompt("How long a delivery is leased", default="30s", err=True)
    deliver = typer.prompt(
        "How many deliveries before a message is dead (empty for ever)", default="", show_default=False, err=True
    )
    start = typer.prompt("Start (earliest, latest, a seq or a time)", default="earliest", err=True)
    settings = {"order": order, "ack_wait": seconds(wait), **_start(start)}
    if key:
        settings["filter"] = Filter(key=key)
    if deliver:
        settings["max_deliver"] = int(deliver) if deliver.isdecimal() else None
    return settings


def _start(text: str | None) -> dict[str, Any]:
    if text in (None, "earliest", "latest"):
        return {} if text is None else {"start": text}
    from_seq, from_time = position(text)
    return {"from_seq": from_seq} if from_seq is not None else {"from_time": from_time}


def _filter(
    key: str | None, headers: list[str] | None, headers_not: list[str] | None, data: str | None
) -> Filter | None:
    found = Filter(key=key, headers=pairs(headers), headers_not=pairs(headers_not), data=data)
    return None if found == Filter() else found


def _backoff(text: str | None) -> Any:
    if text is None or text == "exponential":
        return None if text is None else Exponential(first=1, cap=300, jitter=0.2)
    return [seconds(each) for each in text.split(",")]


@app.command("ls")
def ls(stream: Stream, url: Url = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the consumers of a stream.

    Example: postbus consumer ls orders
    """
    columns = ("name", "order", "ack_wait", "max_ack_pending", "max_deliver", "filter_key_pattern", "paused")
    with open_bus(url, data_dir) as bus:
        found = bus.list_consumers(stream)
        output.emit(
            found, columns, as_json=as_json, empty=f"no consumers yet; create one: postbus consumer add {stream} NAME"
        )


@app.command("info")
def info(stream: Stream, consumer: Consumer, url: Url = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Settings of a consumer, and where it stands.

    Example: postbus consumer info orders billing
    """
    with open_consumer(url, data_dir, stream, consumer) as found:
        settings, stats = found.info(), found.stats()
        if as_json:
            output.emit_json({"settings": settings, "stats": stats})
            return
        output.emit_one(settings, as_json=False)
        output.emit_one(stats, as_json=False, leave_out=("partitions",))


@app.command("edit")
def edit(
    stream: Stream,
    consumer: Consumer,
    ack_wait: AckWait = None,
    max_ack_pending: MaxAckPending = None,
    max_deliver: MaxDeliver = None,
    backoff: Backoff = None,
    filter_key: FilterKey = None,
    filter_header: FilterHeader = None,
    filter_header_not: FilterHeaderNot = None,
    filter_data: FilterData = None,
    unset: Annotated[list[str] | None, typer.Option(help="A setting to put back to none; may be repeated.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Change settings of a consumer.

    Example: postbus consumer edit orders billing --ack-wait 2m --unset max_deliver
    """
    with open_consumer(url, data_dir, stream, consumer) as found:
        found.alter(
            ack_wait=seconds(ack_wait),
            max_ack_pending=max_ack_pending,
            max_deliver=max_deliver,
            backoff=_backoff(backoff),
            filter=_filter(filter_key, filter_header, filter_header_not, filter_data),
            unset=tuple(name.replace("-", "_") for name in unset or ()),
        )
    output.say(f"changed consumer {consumer}")


@app.command("rm")
def rm(stream: Stream, consumer: Consumer, yes: Yes = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Remove a consumer with its position and dead letters.

    Example: postbus consumer rm orders billing --yes
    """
    with open_consumer(url, data_dir, stream, consumer) as found:
        found.info()
        confirm(f"Remove consumer {consumer} of {stream}?", yes)
        found.drop()
    output.say(f"removed consumer {consumer}")


def receive(
    stream: Stream,
    consumer: Consumer,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=10_000, help="How many at most.")] = 1,
    wait: Annotated[str, typer.Option(help="How long to wait for one, such as 10s.")] = "0s",
    ack: Annotated[bool, typer.Option("--ack", help="Ack what was printed.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    ack_wait: AckWait = None,
    url: Url = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Receive messages. Without --ack they are leased: ack or nack them with their ack ids.

    Example: postbus receive orders billing --follow --ack
    """
    columns = ("ack_id", "attempt", "seq", "published_at", "key", "data")
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        if stopped or not follow:
            raise KeyboardInterrupt
        stopped = True

    signal.signal(signal.SIGINT, stop)
    with open_consumer(url, data_dir, stream, consumer) as found:
        while True:
            batch = found.receive(count, wait=1.0 if follow else seconds(wait) or 0, ack_wait=seconds(ack_wait))
            if batch and follow and not as_json:
                for delivery in batch:
                    typer.echo(f"{delivery.seq}  {output.cell(delivery.key)}  {output.cell(delivery.data)}")
            elif batch or not follow:
                output.emit(batch, columns, as_json=as_json, empty="nothing to receive")
            if ack and batch:
                sys.stdout.flush()
                found.ack(batch)
            if not follow or stopped:
                return


app.command("receive")(receive)


@app.command("ack")
def ack(stream: Stream, consumer: Consumer, ack_ids: AckIds, url: Url = None, data_dir: DataDir = None) -> None:
    """Finish deliveries.

    Example: postbus consumer ack orders billing 1f0c9a7be2d34c55-17
    """
    with open_consumer(url, data_dir, stream, consumer) as found:
        _report("acked", found.ack(ack_ids), len(ack_ids))


@app.command("nack")
def nack(
    stream: Stream,
    consumer: Consumer,
    ack_ids: AckIds,
    delay: Annotated[str | None, typer.Option(help="How long they wait first, such as 1m.")] = None,
    reason: Annotated[str | None, typer.Option(help="Why; kept with the message.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Give deliveries back: they come again.

    Example: postbus consumer nack orders billing 1f0c9a7be2d34c55-17 --delay 1m
    """
    with open_consumer(url, data_dir, stream, consumer) as found:
        _report("nacked", found.nack(ack_ids, delay=seconds(delay), reason=reason), len(ack_ids))


def _report(verb: str, counted: int, asked: int) -> None:
    typer.echo(counted)
    rest = "" if counted >= asked else f" of {asked}; the others were settled before, or went to somebody else"
    output.say(f"{verb} {counted}{rest}")


@app.command("peek")
def peek(
    stream: Stream,
    consumer: Consumer,
    state: Annotated[str | None, typer.Option(help="available, delivered, waiting or dead.")] = None,
    key_pattern: Annotated[str | None, typer.Option("--filter", help="A key pattern.")] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=10_000)] = 20,
    after_seq: Annotated[int, typer.Option("--after", help="Only messages behind this seq.")] = 0,
    url: Url = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Look at messages as a consumer sees them, without touching anything.

    Example: postbus consumer peek orders billing --state waiting
    """
    columns = ("seq", "state", "attempts", "until", "key", "data", "reason")
    with open_consumer(url, data_dir, stream, consumer) as found:
        page = found.peek(state=state, key_pattern=key_pattern, after_seq=after_seq, max_messages=count)  # type: ignore[arg-type]
        output.emit(page, columns, as_json=as_json, empty="no messages")


@app.command("seek")
def seek(
    stream: Stream,
    consumer: Consumer,
    to: Annotated[str, typer.Argument(help="earliest, latest, a seq, a time, or 10m for ten minutes ago.")],
    yes: Yes = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Read on from another position; what is in flight is given up.

    Example: postbus consumer seek orders billing 1h --yes
    """
    with open_consumer(url, data_dir, stream, consumer) as found:
        in_flight = found.stats().in_flight
        if in_flight:
            confirm(f"Give up {in_flight:,} messages in flight?", yes)
        typer.echo(found.seek(**_start(to)))
    output.say(f"consumer {consumer} reads on from {to}")


@app.command("replay")
def replay(
    stream: Stream,
    consumer: Consumer,
    start: Annotated[str | None, typer.Option("--from", help="A seq, a time, or 10m for ten minutes ago.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="A seq, a time, or a duration ago.")] = None,
    key_pattern: Annotated[str | None, typer.Option("--filter", help="A key pattern.")] = None,
    rate: Annotated[float | None, typer.Option(help="How many per second at most.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Deliver messages of a range again, while the consumer goes on with the rest.

    Example: postbus consumer replay orders billing --from 2h --to 1h
    """
    if start is None and end is None and key_pattern is None:
        raise InvalidInput("which messages?", "give --from, --to or --filter")
    (from_seq, from_time), (to_seq, to_time) = position(start), position(end)
    count = 0
    with open_consumer(url, data_dir, stream, consumer) as found:
        for count in found.replay(
            from_seq=from_seq, to_seq=to_seq, from_time=from_time, to_time=to_time, key_pattern=key_pattern, rate=rate
        ):
            output.say(f"{count:,} messages")
    typer.echo(count)


@app.command("pause")
def pause(stream: Stream, consumer: Consumer, url: Url = None, data_dir: DataDir = None) -> None:
    """Give no more messages until resume.

    Example: postbus consumer pause orders billing
    """
    with open_consumer(url, data_dir, stream, consumer) as found:
        found.pause()
    output.say(f"paused consumer {consumer}")


@app.command("resume")
def resume(stream: Stream, consumer: Consumer, url: Url = None, data_dir: DataDir = None) -> None:
    """Go on after pause.

    Example: postbus consumer resume orders billing
    """
    with open_consumer(url, data_dir, stream, consumer) as found:
        found.resume()
    output.say(f"resumed consumer {consumer}")

"""`postbus stream`: streams and what is in them."""

from __future__ import annotations

from typing import Annotated

import typer

from postbus.cli import output
from postbus.cli.options import DataDir, Json, Url, Yes, confirm, moment, open_bus, position, seconds

app = typer.Typer(help="Streams: add, list, look at, change, remove, read, purge.", no_args_is_help=True)
Stream = Annotated[str, typer.Argument(help="The stream's name.")]


@app.command("add")
def add(
    stream: Stream,
    partitions: Annotated[int, typer.Option(help="How many partitions: 1 to 1024.")] = 8,
    data_type: Annotated[str, typer.Option("--type", help="What it holds: json, text or bytes.")] = "json",
    max_message_bytes: Annotated[int | None, typer.Option(help="The largest message.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Create a stream.

    Example: postbus stream add orders --partitions 16
    """
    limits = {} if max_message_bytes is None else {"max_message_bytes": max_message_bytes}
    with open_bus(url, data_dir) as bus:
        bus.create_stream(stream, partitions=partitions, data_type=data_type, **limits)  # type: ignore[arg-type]
        if as_json:
            output.emit_json(bus.stream_info(stream))
    output.say(f"created stream {stream}")


@app.command("ls")
def ls(url: Url = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """List streams.

    Example: postbus stream ls
    """
    with open_bus(url, data_dir) as bus:
        columns = ("name", "data_type", "partitions", "last_seq", "message_estimate", "bytes", "created_at")
        output.emit(
            bus.list_streams(), columns, as_json=as_json, empty="no streams yet; create one: postbus stream add orders"
        )


@app.command("info")
def info(stream: Stream, url: Url = None, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Settings and size of a stream.

    Example: postbus stream info orders
    """
    with open_bus(url, data_dir) as bus:
        output.emit_one(bus.stream_info(stream), as_json=as_json)


@app.command("edit")
def edit(
    stream: Stream,
    max_message_bytes: Annotated[int | None, typer.Option(help="The largest message.")] = None,
    segment_bytes: Annotated[int | None, typer.Option(help="How large a segment of the log becomes.")] = None,
    segment_age: Annotated[str | None, typer.Option(help="How old it becomes, such as 1d.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Change settings of a stream.

    Example: postbus stream edit orders --max-message-bytes 1000000
    """
    with open_bus(url, data_dir) as bus:
        bus.alter_stream(
            stream, max_message_bytes=max_message_bytes, segment_bytes=segment_bytes, segment_age=seconds(segment_age)
        )
    output.say(f"changed stream {stream}")


@app.command("rm")
def rm(stream: Stream, yes: Yes = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Remove a stream with all its messages and consumers.

    Example: postbus stream rm orders --yes
    """
    with open_bus(url, data_dir) as bus:
        count = bus.stream_info(stream).message_estimate
        confirm(f"Remove stream {stream} with about {count:,} messages?", yes)
        bus.drop_stream(stream)
    output.say(f"removed stream {stream}")


@app.command("read")
def read(
    stream: Stream,
    start: Annotated[str | None, typer.Option("--from", help="A seq, a time, or 10m for ten minutes ago.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="A seq, a time, or a duration ago.")] = None,
    key_pattern: Annotated[str | None, typer.Option("--filter", help="A key pattern, such as 'orders.>'.")] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many at most.")] = 100,
    backwards: Annotated[bool, typer.Option("--backwards", help="The newest first.")] = False,
    url: Url = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Read messages without consuming them.

    Example: postbus stream read orders --from 10m --filter 'orders.>'
    """
    (from_seq, from_time), (to_seq, to_time) = position(start), position(end)
    found = []
    with open_bus(url, data_dir) as bus:
        messages = bus.scan(
            stream,
            from_seq=from_seq,
            to_seq=to_seq,
            from_time=from_time,
            to_time=to_time,
            key_pattern=key_pattern,
            backwards=backwards,
            page_size=min(count, 1000),
        )
        for message in messages:
            found.append(message)
            if len(found) == count:
                break
    columns = ("seq", "published_at", "key", "data", "headers")
    output.emit(found, columns, as_json=as_json, empty="no messages")


@app.command("purge")
def purge(
    stream: Stream,
    before: Annotated[str | None, typer.Option(help="Only messages before this seq, time, or duration ago.")] = None,
    yes: Yes = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Remove messages for all consumers.

    Example: postbus stream purge orders --before 30d
    """
    confirm(f"Remove {'all messages' if before is None else f'messages before {before}'} of {stream}?", yes)
    with open_bus(url, data_dir) as bus:
        if before is None:
            bus.purge(stream, everything=True)
        elif before.isdecimal():
            bus.purge(stream, before_seq=int(before))
        else:
            bus.purge(stream, before_time=moment(before))
    output.say(f"purged stream {stream}")

"""`postbus stream`: streams and what is in them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from postbus.cli import output, standing
from postbus.cli.archive_hint import say_where_older_is
from postbus.cli.follow import follow_stream
from postbus.cli.global_options import Commands, current
from postbus.cli.options import (
    ExistOk,
    KeyPattern,
    NewName,
    StreamName,
    Yes,
    confirm,
    has_json_texts,
    moment,
    names,
    open_bus,
    position,
)
from postbus.cli.setting_options import with_settings
from postbus.model.errors import InvalidInput
from postbus.model.settings import StreamChanges, StreamSettings

app = Commands("Streams: add, list, show, change, remove, read, purge.")


@app.command("add")
@with_settings(StreamSettings, is_new=True)
def add(stream: NewName, settings: dict[str, Any], exist_ok: ExistOk = False) -> None:
    """Create a stream.

    Example: postbus stream add orders --partitions 16 --retain-up-to 30d
    """
    with open_bus() as bus:
        bus.create_stream(stream, exist_ok=exist_ok, **settings)
        if output.as_json():
            output.emit_json(bus.stream_info(stream))
            return
    output.say(f"{output.made(f'stream {stream}', exist_ok)}; publish with: postbus message send {stream} KEY DATA")


@app.command("ls")
def ls() -> None:
    """List streams.

    Example: postbus stream ls
    """
    columns = ("name", "messages", "last_seq", "bytes", "scheduled", "data_type", "partitions", "created_at")
    empty = "no streams yet; create one: postbus stream add orders"
    with open_bus() as bus:
        output.emit(bus.list_streams(), columns, empty=empty, shown=standing.stream)


@app.command("info")
def info(stream: StreamName) -> None:
    """Show a stream's size and settings.

    Example: postbus stream info orders
    """
    with open_bus() as bus:
        found = bus.stream_info(stream)
    output.emit_one(found if output.as_json() else standing.stream(found))


@app.command("edit")
@with_settings(StreamChanges)
def edit(
    stream: StreamName,
    settings: dict[str, Any],
    unset: Annotated[list[str] | None, typer.Option(help="A limit to remove; may be repeated.")] = None,
) -> None:
    """Change settings of a stream.

    Example: postbus stream edit orders --max-storage 10G --unset retain-up-to
    """
    with open_bus() as bus:
        bus.alter_stream(stream, **settings, unset=names(unset))
        if output.as_json():
            output.emit_json(bus.stream_info(stream))
            return
    output.say(f"changed stream {stream}")


@app.command("rm")
def rm(stream: StreamName, yes: Yes = False) -> None:
    """Remove a stream with all its messages and consumers.

    Example: postbus stream rm orders --yes
    """
    with open_bus() as bus:
        if not yes and not current().as_curl:
            count = standing.messages(bus.stream_info(stream).message_estimate)
            confirm(f"Remove stream {stream} with {count} messages?", yes)
        bus.drop_stream(stream)
    output.done(f"removed stream {stream}", removed=stream)


@app.command("read")
def read(
    stream: StreamName,
    start: Annotated[str | None, typer.Option("--from", help="A seq, a time, or 10m for ten minutes ago.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="A seq, a time, or a duration ago.")] = None,
    key_pattern: KeyPattern = None,
    count: Annotated[int, typer.Option("-n", "--max-messages", min=1, help="The largest number of results.")] = 100,
    backwards: Annotated[bool, typer.Option("--backwards", help="The newest first.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new messages until Ctrl-C; with --from, begin there.")
    ] = False,
) -> None:
    """Read messages without consuming them.

    Example: postbus stream read orders --from 10m --filter 'orders.>'
    """
    (from_seq, from_time), (to_seq, to_time) = position(start), position(end)
    found = []
    with open_bus() as bus:
        if follow:
            if end is not None or backwards:
                raise InvalidInput(
                    "--follow reads new messages, which --to and --backwards exclude", "leave one of them out"
                )
            follow_stream(bus, stream, from_seq=from_seq, from_time=from_time, key_pattern=key_pattern)
            return
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
        quoted = has_json_texts(bus, stream, found)
        how = "read them in Spark with option includeArchive = true"
        say_where_older_is(stream, seq=from_seq, time=from_time, how=how)
    columns = ("seq", "published_at", "key", "data", "headers")
    output.emit(found, output.with_priority(columns, found), empty="no messages", quoted=quoted)


@app.command("state")
def state(
    stream: StreamName,
    key_pattern: KeyPattern = None,
    after_key: Annotated[str, typer.Option("--after", help="Only keys behind this one.")] = "",
    count: Annotated[
        int, typer.Option("-n", "--max-messages", min=1, max=10_000, help="The largest number of results.")
    ] = 100,
) -> None:
    """The present version of each key, in a stream that keeps one message per key.

    Example: postbus stream state customers --filter 'customers.>'
    """
    with open_bus() as bus:
        found = bus.state(stream, key_pattern=key_pattern, after_key=after_key, max_messages=count)
        quoted = has_json_texts(bus, stream, found)
    output.emit(found, ("key", "seq", "published_at", "data"), empty="no keys", quoted=quoted)


@app.command("purge")
def purge(
    stream: StreamName,
    before: Annotated[str | None, typer.Option(help="Only messages before this seq, time, or duration ago.")] = None,
    yes: Yes = False,
) -> None:
    """Remove messages for all consumers.

    Example: postbus stream purge orders --before 30d
    """
    confirm(f"Remove {'all messages' if before is None else f'messages before {before}'} of {stream}?", yes)
    with open_bus() as bus:
        if before is None:
            start = bus.purge(stream, everything=True)
        elif before.isdecimal():
            start = bus.purge(stream, before_seq=int(before))
        else:
            start = bus.purge(stream, before_time=moment(before))
    output.done(f"purged stream {stream}: it starts at seq {start}", start_seq=start)

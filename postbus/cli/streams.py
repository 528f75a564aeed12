"""`postbus stream`: streams and what is in them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from postbus.cli import output
from postbus.cli.archive_hint import say_where_older_is
from postbus.cli.global_options import Commands, current
from postbus.cli.options import KeyPattern, NewName, StreamName, Yes, confirm, moment, names, open_bus, position
from postbus.cli.options import seconds as duration
from postbus.cli.options import size as number_of_bytes

app = Commands("Streams: add, list, look at, change, remove, read, purge.")

MaxMessageBytes = Annotated[str | None, typer.Option(help="The largest message, such as 1M.")]
SegmentBytes = Annotated[str | None, typer.Option(help="How large a segment of the log becomes, such as 256M.")]
SegmentAge = Annotated[str | None, typer.Option(help="How old a segment becomes, such as 1d.")]
RetainUpTo = Annotated[str | None, typer.Option(help="Messages older than this go, such as 30d.")]
RetainAtLeast = Annotated[str | None, typer.Option(help="Messages younger than this stay, such as 1h.")]
MaxMessages = Annotated[int | None, typer.Option(min=1, help="How many messages it holds at most.")]
MaxStorage = Annotated[str | None, typer.Option(help="How much it takes on disk at most, such as 10G.")]
UntilAcked = Annotated[
    bool | None, typer.Option("--until-acked/--keep-acked", help="Messages go when all consumers have finished them.")
]
WhenFull = Annotated[str | None, typer.Option(help="At a limit: evict the oldest messages, or refuse new ones.")]

DedupWindow = Annotated[
    str | None, typer.Option(help="For how long a message with the same dedup id is not published again, such as 10m.")
]


@app.command("add")
def add(
    stream: NewName,
    partitions: Annotated[int, typer.Option(help="How many partitions: 1 to 1024.")] = 8,
    data_type: Annotated[str, typer.Option("--type", help="What it holds: json, text or bytes.")] = "json",
    max_message_bytes: MaxMessageBytes = None,
    segment_bytes: SegmentBytes = None,
    segment_age: SegmentAge = None,
    retain_up_to: RetainUpTo = None,
    retain_at_least: RetainAtLeast = None,
    max_messages: MaxMessages = None,
    max_storage: MaxStorage = None,
    until_acked: UntilAcked = None,
    when_full: WhenFull = None,
    dedup_window: DedupWindow = None,
    one_message_per_key: Annotated[
        bool, typer.Option("--one-message-per-key", help="Publishing a key replaces it; see: postbus stream state.")
    ] = False,
) -> None:
    """Create a stream.

    Example: postbus stream add orders --partitions 16 --retain-up-to 30d
    """
    settings = _settings(
        max_message_bytes=max_message_bytes,
        segment_bytes=segment_bytes,
        segment_age=segment_age,
        retain_up_to=retain_up_to,
        retain_at_least=retain_at_least,
        max_messages=max_messages,
        max_storage=max_storage,
        until_acked=until_acked,
        when_full=when_full,
        dedup_window=dedup_window,
        one_message_per_key=one_message_per_key or None,
    )
    with open_bus() as bus:
        bus.create_stream(stream, partitions=partitions, data_type=data_type, **settings)  # type: ignore[arg-type]
        if output.as_json():
            output.emit_json(bus.stream_info(stream))
            return
    output.say(f"created stream {stream}; publish with: postbus message send {stream} KEY DATA")


def _settings(
    *,
    max_message_bytes: str | None,
    segment_bytes: str | None,
    segment_age: str | None,
    retain_up_to: str | None,
    retain_at_least: str | None,
    max_storage: str | None,
    dedup_window: str | None,
    **plain: Any,
) -> dict[str, Any]:
    """The settings that were given."""
    given = {
        "max_message_bytes": number_of_bytes(max_message_bytes),
        "segment_bytes": number_of_bytes(segment_bytes),
        "segment_age": duration(segment_age),
        "retain_up_to": duration(retain_up_to),
        "retain_at_least": duration(retain_at_least),
        "max_storage": number_of_bytes(max_storage),
        "dedup_window": duration(dedup_window),
        **plain,
    }
    return {name: value for name, value in given.items() if value is not None}


@app.command("ls")
def ls() -> None:
    """List streams.

    Example: postbus stream ls
    """
    columns = ("name", "data_type", "partitions", "last_seq", "message_estimate", "bytes", "created_at")
    with open_bus() as bus:
        output.emit(bus.list_streams(), columns, empty="no streams yet; create one: postbus stream add orders")


@app.command("info")
def info(stream: StreamName) -> None:
    """Settings and size of a stream.

    Example: postbus stream info orders
    """
    with open_bus() as bus:
        output.emit_one(bus.stream_info(stream))


@app.command("edit")
def edit(
    stream: StreamName,
    partitions: Annotated[
        int | None, typer.Option(help="How many partitions from now on; keys stay in order.", min=1, max=1024)
    ] = None,
    max_message_bytes: MaxMessageBytes = None,
    segment_bytes: SegmentBytes = None,
    segment_age: SegmentAge = None,
    retain_up_to: RetainUpTo = None,
    retain_at_least: RetainAtLeast = None,
    max_messages: MaxMessages = None,
    max_storage: MaxStorage = None,
    until_acked: UntilAcked = None,
    when_full: WhenFull = None,
    dedup_window: DedupWindow = None,
    unset: Annotated[list[str] | None, typer.Option(help="A limit to take away; may be repeated.")] = None,
) -> None:
    """Change settings of a stream.

    Example: postbus stream edit orders --max-storage 10G --unset retain-up-to
    """
    settings = _settings(
        max_message_bytes=max_message_bytes,
        segment_bytes=segment_bytes,
        segment_age=segment_age,
        retain_up_to=retain_up_to,
        retain_at_least=retain_at_least,
        max_messages=max_messages,
        max_storage=max_storage,
        until_acked=until_acked,
        when_full=when_full,
        dedup_window=dedup_window,
    )
    with open_bus() as bus:
        bus.alter_stream(stream, partitions=partitions, **settings, unset=names(unset))
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
            count = bus.stream_info(stream).message_estimate
            confirm(f"Remove stream {stream} with about {count:,} messages?", yes)
        bus.drop_stream(stream)
    output.done(f"removed stream {stream}", removed=stream)


@app.command("read")
def read(
    stream: StreamName,
    start: Annotated[str | None, typer.Option("--from", help="A seq, a time, or 10m for ten minutes ago.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="A seq, a time, or a duration ago.")] = None,
    key_pattern: KeyPattern = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="How many at most.")] = 100,
    backwards: Annotated[bool, typer.Option("--backwards", help="The newest first.")] = False,
) -> None:
    """Read messages without consuming them.

    Example: postbus stream read orders --from 10m --filter 'orders.>'
    """
    (from_seq, from_time), (to_seq, to_time) = position(start), position(end)
    found = []
    with open_bus() as bus:
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
        how = "read them in Spark with option includeArchive = true"
        say_where_older_is(stream, seq=from_seq, time=from_time, how=how)
    columns = ("seq", "published_at", "key", "data", "headers")
    output.emit(found, columns, empty="no messages")


@app.command("state")
def state(
    stream: StreamName,
    key_pattern: KeyPattern = None,
    after_key: Annotated[str, typer.Option("--after", help="Only keys behind this one.")] = "",
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=10_000, help="How many at most.")] = 100,
) -> None:
    """The present version of each key, in a stream that keeps one message per key.

    Example: postbus stream state customers --filter 'customers.>'
    """
    with open_bus() as bus:
        found = bus.state(stream, key_pattern=key_pattern, after_key=after_key, max_messages=count)
    output.emit(found, ("key", "seq", "published_at", "data"), empty="no keys")


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

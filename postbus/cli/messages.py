"""`postbus message`: publishing from the command line."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from postbus.cli import as_curl, output
from postbus.cli.global_options import Commands
from postbus.cli.options import StreamName, open_bus, pairs, seconds
from postbus.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from postbus import Bus

app = Commands("Messages: send, delete.")

Key = Annotated[str | None, typer.Argument(help="The key; '-' for none.")]
Data = Annotated[str | None, typer.Argument(help="JSON, or text in a text stream; '-' reads stdin.")]
File = Annotated[
    Path | None,
    typer.Option("--file", help='JSON lines {"key": …, "data": …, "headers": …, "priority": …}; - for stdin.'),
]
Skip = Annotated[int, typer.Option(min=0, help="With --file: skip this many lines first.")]
Header = Annotated[list[str] | None, typer.Option("--header", "-H", help="NAME=VALUE; may be repeated.")]
Delay = Annotated[str | None, typer.Option(help="Deliver it after this long, such as 10m.")]
DedupId = Annotated[
    str | None,
    typer.Option(help="An id: within the stream's dedup window, no other message with this id is published."),
]
Priority = Annotated[int, typer.Option(min=0, max=9, help="0 to 9, higher first.")]
_KEY: Final = re.compile(r"[^\s{}\[\]\"']*")
Ttl = Annotated[str | None, typer.Option(help="Its time to live, such as 1h.")]


@app.command("send")
def send(
    stream: StreamName,
    key: Key = None,
    data: Data = None,
    file: File = None,
    skip: Skip = 0,
    header: Header = None,
    delay: Delay = None,
    ttl: Ttl = None,
    dedup_id: DedupId = None,
    priority: Priority = 4,
) -> None:
    """Publish a message, or a file of them.

    Example: postbus message send orders orders.cus_a.1 '{"quantity": 4}'
    """
    if file is not None:
        from postbus.cli.send_file import send_file

        if key is not None or header:
            raise InvalidInput("with --file, keys and headers are in the file", "leave out KEY, DATA and --header")
        with open_bus() as bus:
            send_file(bus, stream, file, skip, ttl=seconds(ttl), delay=seconds(delay), priority=priority)
        return
    if data is None:
        raise InvalidInput("there is no data", _example(stream, key))
    with open_bus() as bus:
        publish(bus, stream, key, data, header, delay, ttl, dedup_id, priority)


@app.command("delete")
def delete(stream: StreamName, key: Annotated[str, typer.Argument(help="The key.")]) -> None:
    """Delete a key in a stream with one message per key. Consumers receive a message about it.

    Example: postbus message delete customers customers.cus_a
    """
    with open_bus() as bus:
        seq = bus.delete_key(stream, key)
    if seq is None:
        raise NotFound(f'key "{key}" does not exist', f"see: postbus stream state {stream}")
    output.emit_number(seq, f"deleted {key}", name="seq")


def _example(stream: str, key: str | None) -> str:
    """A command that has what this one lacks: its stream, if the key seems to be the data."""
    if key is not None and not _KEY.fullmatch(key):
        return f"name the stream first: postbus message send STREAM {shlex.quote(stream)} {shlex.quote(key)}"
    return f"""postbus message send {shlex.quote(stream)} {key or "KEY"} '{{"quantity": 4}}'"""


def publish(
    bus: Bus,
    stream: str,
    key: str | None,
    data: str,
    header: list[str] | None,
    delay: str | None,
    ttl: str | None,
    dedup_id: str | None,
    priority: int,
) -> None:
    """Publish one message, and print its number."""
    content = sys.stdin.read() if data == "-" else data
    with as_curl.preparing():
        data_type = bus.stream_info(stream).data_type
    number = bus.publish(
        stream,
        key=None if key in (None, "-") else key,
        data=value_of(data_type, content),
        headers=pairs(header),
        delay=seconds(delay),
        ttl=seconds(ttl),
        dedup_id=dedup_id,
        priority=priority,
    )
    if delay is None:
        verb = "was published before" if number.is_duplicate else "published"
        output.emit_number(number, f"{verb} as seq {number}", name="seq")
    else:
        output.emit_number(number, f"scheduled; cancel with: postbus schedule cancel {stream} {number}", name="id")


def value_of(data_type: str, content: str) -> Any:
    """Data as it is typed, for a stream of that type."""
    if data_type == "text":
        return content
    if data_type == "bytes":
        return content.encode()
    try:
        return json.loads(content)
    except ValueError as error:
        raise InvalidInput(f"the data is not JSON: {error}", f"quote a string: '{json.dumps(content)}'") from error

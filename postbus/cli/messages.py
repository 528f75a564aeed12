"""`postbus message`: publishing from the command line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from postbus.cli import output
from postbus.cli.options import DataDir, Url, open_bus, pairs, seconds
from postbus.model.errors import InvalidInput
from postbus.model.message import Message

if TYPE_CHECKING:
    from postbus import Bus

app = typer.Typer(help="Messages: send.", no_args_is_help=True)
_BATCH: Final = 2000
_REPORT_SECONDS: Final = 1.0


@app.callback()
def messages() -> None:
    """Messages: send."""


@app.command("send")
def send(
    stream: Annotated[str, typer.Argument(help="The stream's name.")],
    key: Annotated[str | None, typer.Argument(help="The key; '-' for none.")] = None,
    data: Annotated[str | None, typer.Argument(help="JSON, or text in a text stream; '-' reads stdin.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help='JSON lines {"key": …, "data": …, "headers": …}; - for stdin.')
    ] = None,
    skip: Annotated[int, typer.Option(min=0, help="With --file: go on after so many lines.")] = 0,
    header: Annotated[list[str] | None, typer.Option("--header", "-H", help="NAME=VALUE; may be repeated.")] = None,
    deliver_in: Annotated[str | None, typer.Option(help="Deliver it later, such as in 10m.")] = None,
    ttl: Annotated[str | None, typer.Option(help="How long it lives, such as 1h.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Publish a message, or a file of them.

    Example: postbus message send orders orders.cus_a.1 '{"quantity": 4}'
    """
    with open_bus(url, data_dir) as bus:
        if file is not None:
            _send_file(bus, stream, file, skip)
            return
        if data is None:
            raise InvalidInput(
                "there is no data", f"""postbus message send {stream} {key or "KEY"} '{{"quantity": 4}}'"""
            )
        content = sys.stdin.read() if data == "-" else data
        number = bus.publish(
            stream,
            key=None if key in (None, "-") else key,
            data=_value(bus.stream_info(stream).data_type, content),
            headers=pairs(header),
            delay=seconds(deliver_in),
            ttl=seconds(ttl),
        )
    typer.echo(number)
    output.say("scheduled" if deliver_in is not None else f"published as seq {number}")


def _value(data_type: str, content: str) -> Any:
    if data_type == "text":
        return content
    if data_type == "bytes":
        return content.encode()
    try:
        return json.loads(content)
    except ValueError as error:
        raise InvalidInput(f"the data is not JSON: {error}", f"quote a string: '{json.dumps(content)}'") from error


def _send_file(bus: Bus, stream: str, file: Path, skip: int) -> None:
    """Publish lines in batches; each batch is all or nothing, so a failure names the line to go on after."""
    source = sys.stdin if str(file) == "-" else file.open(encoding="utf-8")
    sent = skip
    started = reported = time.monotonic()
    with source:
        lines = enumerate(islice(source, skip, None), start=skip + 1)
        for batch in _batches(_parsed(lines)):
            try:
                bus.publish_many(stream, batch)
            except BaseException:
                output.say(f"{sent:,} lines are published; go on with: --skip {sent}")
                raise
            sent += len(batch)
            if time.monotonic() - reported >= _REPORT_SECONDS:
                reported = time.monotonic()
                output.say(f"{sent:,} messages, {(sent - skip) / (reported - started):,.0f} per second")
    elapsed = max(time.monotonic() - started, 1e-6)
    typer.echo(sent - skip)
    output.say(f"published {sent - skip:,} messages, {(sent - skip) / elapsed:,.0f} per second")


def _parsed(lines: Iterable[tuple[int, str]]) -> Iterator[Message]:
    import orjson

    for number, line in lines:
        try:
            value = orjson.loads(line)
            message = Message(key=value.get("key"), data=value["data"], headers=value.get("headers"))
        except (ValueError, KeyError, AttributeError) as error:
            raise InvalidInput(f'line {number} is not an object with "data": {error}') from error
        yield message


def _batches(values: Iterator[Message]) -> Iterator[list[Message]]:
    while batch := list(islice(values, _BATCH)):
        yield batch

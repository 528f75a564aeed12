"""Arguments that many commands share, their parsing, and the bus that they choose."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from postbus.cli import as_curl, output
from postbus.cli.global_options import current
from postbus.cli.target import find_target
from postbus.model.amounts import DURATION, bytes_of, seconds_of
from postbus.model.errors import Error, InvalidInput, NotFound

if TYPE_CHECKING:
    from postbus import Bus, Consumer
    from postbus.cli.target import Target


def complete_stream(ctx: typer.Context, incomplete: str) -> list[str]:
    from postbus.cli import completion

    return completion.streams(ctx.params, incomplete)


def complete_consumer(ctx: typer.Context, incomplete: str) -> list[str]:
    from postbus.cli import completion

    return completion.consumers(ctx.params, incomplete)


StreamName = Annotated[str, typer.Argument(help="The stream's name.", autocompletion=complete_stream)]
AnyStream = Annotated[
    str | None, typer.Argument(help="The stream's name; all streams without one.", autocompletion=complete_stream)
]
ConsumerName = Annotated[str, typer.Argument(help="The consumer's name.", autocompletion=complete_consumer)]
GroupName = Annotated[str, typer.Argument(help="The group's name.", autocompletion=complete_consumer)]
NewName = Annotated[str, typer.Argument(help="Its name: letters, digits, _ and -.")]
KeyPattern = Annotated[str | None, typer.Option("--filter", help="Only keys that match, such as 'orders.>'.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
ExistOk = Annotated[bool, typer.Option("--exist-ok", help="Accept one that exists, if it has these settings.")]

_BY_DEFAULT: Final = "no other bus was chosen: postbus context info"


@contextmanager
def open_bus() -> Iterator[Bus]:
    """The bus that a command uses. With --as-curl it prints its requests instead of sending them."""
    import postbus

    target = find_target()
    if current().as_curl:
        with as_curl.showing(target) as shown:
            yield shown
        return
    _say_if_started(target)
    with (
        postbus.connect(target.url, token=target.token, data_dir=target.data_dir, pool_size=2) as bus,
        _suggesting_streams(bus),
    ):
        yield bus


def _say_if_started(target: Target) -> None:
    """Say so before a Postgres is started: the user may have meant a bus that runs."""
    if target.url is not None:
        return
    from postbus.db.embedded import EmbeddedServer

    server = EmbeddedServer(target.data_dir)
    if not server.is_running:
        output.say(
            f"no program uses the embedded Postgres of {server.directory.path}, so this command starts it"
            f" ({_BY_DEFAULT if target.chosen_by == 'default' else f'chosen by {target.chosen_by}'})"
        )


@contextmanager
def open_consumer(stream: str, consumer: str) -> Iterator[Consumer]:
    """The consumer that a command uses."""
    with open_bus() as bus:
        try:
            yield bus.consumer(stream, consumer)
        except NotFound as error:
            if 'consumer "' not in error.message:
                raise
            names = _names(lambda: bus.list_consumers(stream))
            raise NotFound(
                error.message, suggestion(consumer, names, f"postbus consumer add {stream} {consumer}")
            ) from error


@contextmanager
def _suggesting_streams(bus: Bus) -> Iterator[None]:
    try:
        yield
    except NotFound as error:
        if not error.message.startswith('stream "'):
            raise
        name = error.message.split('"')[1]
        names = _names(lambda: bus.overview())
        raise NotFound(error.message, suggestion(name, names, f"postbus stream add {name}")) from error


def has_json_texts(client: Bus | Consumer, stream: str, messages: Iterable[Any]) -> bool:
    """Whether among these messages are JSON strings, which would look like the text of a text stream."""
    return any(isinstance(each.data, str) for each in messages) and _data_type(client, stream) == "json"


@cache
def _data_type(client: Bus | Consumer, stream: str) -> str:
    from postbus.client._sync.streams import Streams

    try:
        return Streams(client._transport).stream_info(stream).data_type
    except Error:
        return "text"


def _names(ask: Callable[[], Iterable[Any]]) -> list[str]:
    """The existing names; none if the token may not list them."""
    try:
        return [info.name for info in ask()]
    except Error:
        return []


def suggestion(name: str, names: list[str], create: str) -> str:
    """A hint about a name that does not exist."""
    close = get_close_matches(name, names, n=1)
    return f'did you mean "{close[0]}"?' if close else f"create it with: {create}"


def seconds(text: str | None) -> float | None:
    """A duration such as 30, 1.5s, 10m, 2h or 7d, in seconds.

    Raises:
        InvalidInput: The text is not valid.
    """
    return None if text is None else seconds_of(text)


def size(text: str | None) -> int | None:
    """A number of bytes such as 1000, 64k, 10M or 1.5G.

    Raises:
        InvalidInput: The text is not valid.
    """
    return None if text is None else bytes_of(text)


def moment(text: str | None) -> datetime | None:
    """A time: ISO 8601, or a duration ago such as 10m.

    Raises:
        InvalidInput: The text is neither.
    """
    if text is None:
        return None
    if DURATION.fullmatch(text):
        return datetime.now(UTC) - timedelta(seconds=seconds(text) or 0)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f'"{text}" is not a time', "write it as 2026-01-31T12:00Z, or as 10m for ten minutes ago"
        ) from error
    return found if found.tzinfo is not None else found.astimezone()


def position(text: str | None) -> tuple[int | None, datetime | None]:
    """Where to read from: a seq (a plain number), a time, or a duration ago."""
    if text is not None and text.isdecimal():
        return int(text), None
    return None, moment(text)


def pairs(values: list[str] | None) -> dict[str, str] | None:
    """Headers given as NAME=VALUE.

    Raises:
        InvalidInput: One has no "=".
    """
    found = {}
    for value in values or []:
        name, equals, content = value.partition("=")
        if not equals or not name:
            raise InvalidInput(f'"{value}" is not NAME=VALUE')
        found[name] = content
    return found or None


def names(values: list[str] | None) -> tuple[str, ...]:
    """Names of settings, written with dashes or underscores."""
    return tuple(value.strip("-").replace("-", "_") for value in values or ())


def can_ask() -> bool:
    """Whether somebody sits at a terminal."""
    return sys.stdin.isatty()


def confirm(question: str, yes: bool) -> None:
    """Ask before data is lost. Without a terminal, --yes is required."""
    if yes or current().as_curl:
        return
    if not can_ask():
        raise InvalidInput(f"{question} There is no terminal to ask on", "add --yes")
    typer.confirm(question, abort=True, err=True)

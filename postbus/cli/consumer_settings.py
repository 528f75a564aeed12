"""The settings of a consumer as questions, and where one starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from postbus.cli import as_curl, options
from postbus.cli.global_options import current
from postbus.cli.options import position
from postbus.cli.setting_options import backoff, written
from postbus.model import patterns
from postbus.model.amounts import seconds_of
from postbus.model.consumer import Filter
from postbus.model.errors import Error, InvalidInput, NotFound
from postbus.model.settings import ConsumerSettings, Setting, choices_of, settings_of

if TYPE_CHECKING:
    from postbus import Bus

_Answer = TypeVar("_Answer")
_Number = TypeVar("_Number", int, float)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")

Start = Annotated[
    str | None,
    typer.Option("--from", help="Where to start: earliest, latest, a seq, a time, or 10m for ten minutes ago."),
]
AckWait = Annotated[str | None, typer.Option(help="How long the deliveries are leased, such as 30s.")]

_QUESTIONS: Final = (
    ("order", "Order (key, none, partition)", "key"),
    ("filter", "Only keys that match, such as orders.> (empty for all)", ""),
    ("start", "Start (earliest, latest, a seq, a time, or 10m for ten minutes ago)", "earliest"),
    ("ack_wait", "How long a delivery is leased", "30s"),
    ("max_ack_pending", "How many messages may be in flight", "10000"),
    ("max_deliver", "How many deliveries before a message is dead (empty for no limit)", ""),
    ("backoff", "Delays after failures, such as 1s,10s,1m or exponential (empty for none)", ""),
)


def ask() -> dict[str, Any]:
    """Ask for each setting; Enter takes the default, and an invalid answer is asked for again."""
    settings: dict[str, Any] = {}
    for name, question, default in _QUESTIONS:
        settings.update(asked(question, partial(_answered, name), default=default))
    return settings


def asked(question: str, read: Callable[[str], _Answer], *, default: str | None = "") -> _Answer:
    """Ask until the answer can be read; what is wrong with it is said at once."""
    while True:
        answer: str = typer.prompt(question, default=default, show_default=bool(default), err=True)
        try:
            return read(answer.strip())
        except Error as error:
            typer.echo(f"{error.message}; {error.hint or 'try again'}", err=True)


def names(bus: Bus, stream: str | None, consumer: str | None) -> tuple[str, str]:
    """The stream and the name of a new consumer: asked for, on a terminal, where they were not given.

    Raises:
        InvalidInput: One is missing, and there is no terminal to ask on.
    """
    if (stream is None or consumer is None) and (current().as_curl or not options.can_ask()):
        missing = "stream" if stream is None else "name of the consumer"
        raise InvalidInput(f"the {missing} is missing", "postbus consumer add STREAM CONSUMER")
    known = [info.name for info in bus.list_streams()] if stream is None else []
    if stream is None and not known:
        raise NotFound("there are no streams yet", "create one: postbus stream add orders")

    def existing(name: str) -> str:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise NotFound(
                f'stream "{name}" does not exist',
                f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(known[:20])}",
            )
        return name

    if stream is None:
        stream = asked("Stream", existing, default=known[0] if len(known) == 1 else None)
    with as_curl.preparing():
        taken = {info.name for info in bus.list_consumers(stream)}  # Fails on an unknown stream before any question.

    def new(name: str) -> str:
        if not _NAME.fullmatch(name):
            raise InvalidInput(f'"{name}" is not a name', "use 1 to 63 letters, digits, _ or -")
        if name in taken:
            raise InvalidInput(f'stream "{stream}" has a consumer "{name}"', "choose another name")
        return name

    return stream, asked("Name of the consumer", new, default=None) if consumer is None else consumer


def _answered(name: str, answer: str) -> dict[str, Any]:
    if not answer:
        return {}
    if name == "start":
        return start(answer)
    setting = settings_of(ConsumerSettings)[name]
    if setting.kind == "choice" and answer not in (choices := choices_of(ConsumerSettings, name)):
        raise InvalidInput(f'"{answer}" is not one of {", ".join(choices)}')
    if setting.kind == "filter":
        return {name: Filter(key=patterns.check(answer))}
    if setting.kind == "duration":
        return {name: _in_range(setting, seconds_of(answer), answer)}
    if setting.kind == "backoff":
        return {name: backoff(answer)}
    if setting.kind == "number":
        number = answer.replace(",", "")
        if not number.isdecimal():
            raise InvalidInput(f'"{answer}" is not a number')
        return {name: _in_range(setting, int(number), answer)}
    return {name: answer}


def _in_range(setting: Setting, value: _Number, answer: str) -> _Number:
    for bound, is_outside, word in (
        (setting.least, setting.least is not None and value < setting.least, "at least"),
        (setting.most, setting.most is not None and value > setting.most, "at most"),
    ):
        if is_outside and bound is not None:
            raise InvalidInput(f"{answer} is not allowed", f"it is {word} {written(setting, bound)}")
    return value


def start(text: str | None) -> dict[str, Any]:
    """Where to start: earliest, latest, a seq, a time, or a duration ago."""
    if text in (None, "earliest", "latest"):
        return {} if text is None else {"start": text}
    from_seq, from_time = position(text)
    return {"from_seq": from_seq} if from_seq is not None else {"from_time": from_time}

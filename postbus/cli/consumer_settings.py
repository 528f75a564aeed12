"""The settings of a consumer as questions, and where one starts."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from postbus.cli.options import position, seconds
from postbus.cli.setting_options import backoff
from postbus.model.consumer import Filter
from postbus.model.errors import InvalidInput

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
        settings.update(_asked(name, question, default))
    return settings


def _asked(name: str, question: str, default: str) -> dict[str, Any]:
    while True:
        answer: str = typer.prompt(question, default=default, show_default=bool(default), err=True)
        if answer == "":
            return {}
        try:
            return _answered(name, answer.strip())
        except InvalidInput as error:
            typer.echo(f"{error.message}; {error.hint or 'try again'}", err=True)


def _answered(name: str, answer: str) -> dict[str, Any]:
    if name == "order" and answer not in ("key", "none", "partition"):
        raise InvalidInput(f'"{answer}" is not an order', "it is key, none or partition")
    if name == "start":
        return start(answer)
    if name == "filter":
        return {"filter": Filter(key=answer)}
    if name == "ack_wait":
        return {name: seconds(answer)}
    if name == "backoff":
        return {name: backoff(answer)}
    if name in ("max_ack_pending", "max_deliver"):
        if not answer.isdecimal():
            raise InvalidInput(f'"{answer}" is not a number')
        return {name: int(answer)}
    return {name: answer}


def start(text: str | None) -> dict[str, Any]:
    """Where to start: earliest, latest, a seq, a time, or a duration ago."""
    if text in (None, "earliest", "latest"):
        return {} if text is None else {"start": text}
    from_seq, from_time = position(text)
    return {"from_seq": from_seq} if from_seq is not None else {"from_time": from_time}

"""The settings of a consumer as options, and as questions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from postbus.cli.options import pairs, position, seconds
from postbus.model.consumer import Exponential, Filter
from postbus.model.errors import InvalidInput

Order = Annotated[str | None, typer.Option(help="key (the default), none or partition.")]
FilterKey = Annotated[str | None, typer.Option("--filter", help="A key pattern, such as 'orders.>'.")]
FilterHeader = Annotated[list[str] | None, typer.Option(help="NAME=VALUE that a message must have; may be repeated.")]
FilterHeaderNot = Annotated[list[str] | None, typer.Option(help="NAME=VALUE that a message must not have.")]
FilterData = Annotated[str | None, typer.Option(help="A JSON path, such as '$.amount > 100'.")]
AckWait = Annotated[str | None, typer.Option(help="How long a delivery is leased, such as 30s.")]
MaxAckPending = Annotated[int | None, typer.Option(help="How many messages may be in flight.")]
MaxDeliver = Annotated[int | None, typer.Option(help="How many deliveries before a message is dead.")]
Backoff = Annotated[str | None, typer.Option("--backoff", help="Delays after failures: 1s,10s,1m; or 'exponential'.")]
RetainDead = Annotated[str | None, typer.Option(help="How long dead letters are kept, such as 30d.")]
MaxPerKey = Annotated[int | None, typer.Option(help="In order key: how many messages of a key a batch may hold.")]
MaxWaiting = Annotated[int | None, typer.Option(help="In order key: how many messages may be parked.")]
OnDead = Annotated[str | None, typer.Option(help="In order key: a dead letter lets its key continue, or holds it.")]
OnExpired = Annotated[str | None, typer.Option(help="What is past its time to live: skip or bury.")]
ExpireAfter = Annotated[str | None, typer.Option(help="It is removed when nobody received for so long, such as 7d.")]
KeepHistory = Annotated[
    str | None, typer.Option(help="For how long history knows what became of deliveries, such as 1d.")
]
KeepUnread = Annotated[
    bool | None, typer.Option("--keep-unread/--drop-unread", help="The stream keeps what it has not finished.")
]
_QUESTIONS = (
    ("order", "Order (key, none, partition)", "key"),
    ("filter", "Only keys that match, such as orders.> (empty for all)", ""),
    ("start", "Start (earliest, latest, a seq, a time, or 10m for ten minutes ago)", "earliest"),
    ("ack_wait", "How long a delivery is leased", "30s"),
    ("max_ack_pending", "How many messages may be in flight", "10000"),
    ("max_deliver", "How many deliveries before a message is dead (empty for ever)", ""),
    ("backoff", "Delays after failures, such as 1s,10s,1m or exponential (empty for none)", ""),
)


def ask() -> dict[str, Any]:
    """Walk through the settings; Enter takes the default, and what cannot be right is asked again."""
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


def filter_of(
    key: str | None, headers: list[str] | None, headers_not: list[str] | None, data: str | None
) -> Filter | None:
    found = Filter(key=key, headers=pairs(headers), headers_not=pairs(headers_not), data=data)
    return None if found == Filter() else found


def backoff(text: str | None) -> Any:
    """Delays, or a backoff that grows."""
    if text is None or text == "exponential":
        return None if text is None else Exponential(first=1, cap=300, jitter=0.2)
    return [seconds(each.strip()) for each in text.split(",")]


def given(**settings: Any) -> dict[str, Any]:
    """Those settings that were given."""
    return {name: value for name, value in settings.items() if value is not None}

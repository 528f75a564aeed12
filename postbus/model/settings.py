"""The settings of streams and consumers, one line each.

The SQL calls, the fields over HTTP with their ranges, the options of the command line, what can be unset, and the reference page
follow from these lines. `make generate` writes them into the functions of SQL that take, check or return settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Final, Literal, TypedDict, get_args, get_type_hints

from postbus.model.consumer import Backoff, Filter, OnDead, OnExpired, Ordering
from postbus.model.stream import DataType, WhenFull

Kind = Literal["number", "bytes", "duration", "flag", "choice", "name", "backoff", "filter"]
_MINUTE: Final = 60
_DAY: Final = 24 * 60 * _MINUTE
_MOST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Attributes:
        kind: What it is.
        help: What it does, in a sentence.
        default: Its value when it is not given, in words of the API (durations in seconds).
        least: The smallest number or duration, in seconds.
        most: The largest.
        can_unset: Whether it can be put back to none.
        sql_name: Its name in SQL, where that differs.
    """

    kind: Kind
    help: str
    default: Any = None
    least: float | None = None
    most: float | None = None
    can_unset: bool = False
    sql_name: str | None = None


def _count(help: str, default: int | None, least: int, most: int, **more: Any) -> Setting:
    return Setting("number", help, default, least, most, can_unset=default is None, **more)


def _size(help: str, default: int | None, least: int, most: int) -> Setting:
    return Setting("bytes", help, default, least, most, can_unset=default is None)


def _time(help: str, default: float | None, least: float, most: float) -> Setting:
    return Setting("duration", help, default, least, most, can_unset=default is None)


def _flag(help: str) -> Setting:
    return Setting("flag", help, False)


class StreamChanges(TypedDict, total=False):
    """The settings of a stream that can be altered."""

    partitions: Annotated[int | None, _count("How many partitions its keys are spread over.", 8, 1, 1024)]
    max_message_bytes: Annotated[int | None, _size("The largest data of a message.", 8 * 2**20, 1, 2**28)]
    segment_bytes: Annotated[int | None, _size("The size at which a segment of the log is full.", 2**28, 2**16, 2**40)]
    segment_age: Annotated[float | timedelta | None, _time("The age at which a segment ends.", _DAY, 1, 3650 * _DAY)]
    retain_up_to: Annotated[
        float | timedelta | None, _time("Messages older than this are removed.", None, 1, 36_500 * _DAY)
    ]
    retain_at_least: Annotated[
        float | timedelta | None, _time("Messages younger than this stay, whatever the limits.", None, 0, 36_500 * _DAY)
    ]
    max_messages: Annotated[int | None, _count("How many messages it may hold.", None, 1, _MOST)]
    max_storage: Annotated[
        int | None, _size("How many bytes it may take on disk, kept to within a tenth.", None, 2**20, _MOST)
    ]
    until_acked: Annotated[bool | None, _flag("Messages are removed when all consumers have finished them.")]
    when_full: Annotated[
        WhenFull | None, Setting("choice", "At a limit: evict the oldest messages, or refuse new ones.", "evict")
    ]
    dedup_window: Annotated[
        float | timedelta | None,
        _time("A message whose dedup_id was published this recently is not published again.", None, 1, 30 * _DAY),
    ]
    process_unmodified: Annotated[
        bool | None, _flag("With one message per key: publish a message even if its data has not changed.")
    ]


class StreamSettings(StreamChanges, total=False):
    """The settings of a new stream."""

    data_type: Annotated[
        DataType, Setting("choice", "What messages hold: json (any JSON value), text (str) or bytes.", "json")
    ]
    one_message_per_key: Annotated[
        bool | None, _flag("A message replaces the one before of its key; consumers get the latest, `state` shows all.")
    ]
    channel_tokens: Annotated[
        int | None, _count("How many leading tokens of a key name its channel (tenant); none: no channels.", None, 1, 8)
    ]


class ConsumerChanges(TypedDict, total=False):
    """The settings of a consumer that can be altered."""

    ack_wait: Annotated[
        float | timedelta | None,
        _time("How long a delivery is leased before it may go to another worker.", 30, 0.001, 7 * _DAY),
    ]
    max_ack_pending: Annotated[int | None, _count("How many messages may be in flight.", 10_000, 1, 1_000_000)]
    max_deliver: Annotated[
        int | None, _count("How many deliveries before a message becomes a dead letter.", None, 1, 1_000_000)
    ]
    backoff: Annotated[
        Backoff | None,
        Setting(
            "backoff", "How long a message waits after its first, second, … failure; the last repeats.", can_unset=True
        ),
    ]
    retain_dead: Annotated[float | timedelta | None, _time("How long dead letters are kept.", None, 0, 3650 * _DAY)]
    max_per_key: Annotated[
        int | None, _count('In order "key": how many messages of a key a batch may hold.', None, 1, 10_000)
    ]
    max_waiting: Annotated[
        int | None,
        _count(
            'In order "key": how many messages may be parked behind others of their key before reading ahead stops.',
            1000,
            1,
            1_000_000,
        ),
    ]
    on_dead: Annotated[
        OnDead | None,
        Setting(
            "choice",
            'In order "key": a dead letter lets its key continue, or holds it until it is redriven or discarded.',
            "continue",
        ),
    ]
    filter: Annotated[
        Filter | str | None,
        Setting("filter", "Which messages it gets, by key, headers or content; a string is a key pattern."),
    ]
    on_expired: Annotated[
        OnExpired | None,
        Setting(
            "choice", "A message past its time to live is skipped (skip), or becomes a dead letter (bury).", "skip"
        ),
    ]
    keep_unread: Annotated[bool | None, _flag("The stream keeps what it has not finished, whatever its retention.")]
    expire_after: Annotated[
        float | timedelta | None,
        _time("It is removed when nobody has received from it for this long.", None, _MINUTE, 3650 * _DAY),
    ]
    keep_history: Annotated[
        float | timedelta | None, _time("How long `history` keeps the outcome of each delivery.", None, 1, 3650 * _DAY)
    ]
    dead_letters_to: Annotated[
        str | None, Setting("name", "A stream that a copy of each new dead letter is published to.", can_unset=True)
    ]
    ageing: Annotated[
        float | timedelta | None,
        _time("A message gains a level of priority each time that it has waited this long.", None, 1, 3650 * _DAY),
    ]
    fair: Annotated[
        bool | None, _flag('In order "none", of a stream with channels: channels that have messages take turns.')
    ]


class ConsumerSettings(ConsumerChanges, total=False):
    """The settings of a new consumer."""

    order: Annotated[
        Ordering,
        Setting(
            "choice",
            "key: messages of a key in order, and a failed one holds its key. none: any message that is not in flight. "
            "partition: one batch of a partition at a time, and a failed message holds its partition.",
            "key",
            sql_name="ordering",
        ),
    ]


@cache
def settings_of(kind: Any) -> dict[str, Setting]:
    """The settings of one of these types, by name."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: next(each for each in get_args(hint) if isinstance(each, Setting)) for name, hint in hints.items()}


def choices_of(kind: Any, name: str) -> tuple[str, ...]:
    """The values of a setting that is a choice."""
    hint = get_type_hints(kind)[name]
    options = [each for each in (hint, *get_args(hint)) if getattr(each, "__origin__", None) is Literal]
    return get_args(options[0])


def check_names(kind: Any, given: Any) -> None:
    """Refuse names that are not settings.

    Raises:
        TypeError: The error suggests the nearest name.
    """
    known = settings_of(kind)
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f'; did you mean "{close[0]}"?' if close else ""
            raise TypeError(f'there is no setting "{name}"{hint}')

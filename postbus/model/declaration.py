"""What a file for `postbus apply` declares: streams, queues, consumers and groups, with their settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

from postbus.model import patterns
from postbus.model.amounts import bytes_of, seconds_of, written_duration, written_size
from postbus.model.consumer import Exponential, Filter
from postbus.model.errors import InvalidInput
from postbus.model.settings import ConsumerSettings, Setting, StreamSettings, choices_of, settings_of

Kind = Literal["stream", "queue", "consumer", "group"]
Value = Any

_OF_GROUPS: Final = ("keep_unread", "expire_after")
# What a queue is, whatever the file says; and what it has unless the file says otherwise.
QUEUE_IS: Final[Mapping[str, Value]] = {"until_acked": True}
QUEUE_DEFAULTS: Final[Mapping[str, Value]] = {"partitions": 1, "order": "none"}
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,63}")
_EXPONENTIAL: Final = Exponential(first=1, cap=300, jitter=0.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A stream, queue, consumer or group that should exist.

    Attributes:
        kind: What it is.
        stream: The stream that it is or reads.
        name: Its name.
        settings: All of its settings, in a form that can be compared.
        start: Where a new consumer or group begins.
    """

    kind: Kind
    stream: str
    name: str
    settings: Mapping[str, Value]
    start: str | None = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """Everything that a file declares, in its order, each stream before what reads it."""

    source: str
    declared: tuple[Declared, ...]


def settings_of_kind(kind: Kind) -> dict[str, Setting]:
    """The settings that a file may give, by name."""
    stream, consumer = settings_of(StreamSettings), settings_of(ConsumerSettings)
    if kind == "stream":
        return dict(stream)
    if kind == "consumer":
        return dict(consumer)
    if kind == "group":
        return {name: consumer[name] for name in _OF_GROUPS}
    return {name: setting for name, setting in (stream | consumer).items() if name not in QUEUE_IS}


def default_of(kind: Kind, name: str, setting: Setting) -> Value:
    """What a setting is when the file does not give it."""
    value = QUEUE_DEFAULTS.get(name, setting.default) if kind == "queue" else setting.default
    return comparable(setting, value)


def comparable(setting: Setting, value: Value) -> Value:
    """A value in the one form in which it is compared."""
    if setting.kind == "duration":
        return timedelta(seconds=value) if isinstance(value, int | float) else value
    if setting.kind == "filter":
        found = Filter(key=value) if isinstance(value, str) else value or Filter()
        return Filter(
            key=found.key, headers=found.headers or None, headers_not=found.headers_not or None, data=found.data
        )
    if setting.kind == "backoff":
        if isinstance(value, Exponential):
            cap = value.cap if value.cap is None else _delay(value.cap)
            return Exponential(
                first=_delay(value.first), factor=float(value.factor), cap=cap, jitter=float(value.jitter)
            )
        return tuple(map(_delay, value or ()))
    return value


def _delay(value: float | timedelta) -> timedelta:
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


def read(source: Mapping[str, Any] | Path | str) -> Declaration:
    """What a file, or a mapping of the same form, declares.

    Raises:
        InvalidInput: It is not TOML, or something in it is not known or not valid; the error names the place.
    """
    if isinstance(source, Mapping):
        return _Reader("the declaration").read(source)
    path = Path(source)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    return read_text(text, path.name)


def read_text(text: str, name: str) -> Declaration:
    """What the text of a file declares.

    Raises:
        InvalidInput: As `read`.
    """
    import tomllib

    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{name} is not valid TOML: {error}") from error
    return _Reader(name).read(found)


@dataclass(slots=True)
class _Reader:
    """Reads one file, and knows where it is."""

    source: str
    found: list[Declared] = field(default_factory=list)

    def read(self, tables: Mapping[str, Any]) -> Declaration:
        for name in tables:
            if name not in ("streams", "queues"):
                self._unknown("", name, ("streams", "queues"), "table")
        for name, table in self._tables(tables, "", "streams"):
            self._stream(name, table)
        for name, table in self._tables(tables, "", "queues"):
            if any(each.name == name and each.kind == "stream" for each in self.found):
                self._refuse(f"queues.{name}", f'"{name}" is a stream too: a queue is a stream of its own')
            self.found.append(self._declared("queue", name, name, table, f"queues.{name}"))
        return Declaration(self.source, tuple(self.found))

    def _stream(self, name: str, table: Mapping[str, Any]) -> None:
        place = f"streams.{name}"
        own = {key: value for key, value in table.items() if key not in ("consumers", "groups")}
        self.found.append(self._declared("stream", name, name, own, place, more=("consumers", "groups")))
        names = set()
        for noun, kind in (("consumers", "consumer"), ("groups", "group")):
            for reader, settings in self._tables(table, place, noun):
                if reader in names:
                    self._refuse(f"{place}.{noun}.{reader}", f'stream "{name}" has a consumer of that name')
                names.add(reader)
                inner = f"{place}.{noun}.{reader}"
                self.found.append(self._declared(kind, name, reader, settings, inner))  # type: ignore[arg-type]

    def _tables(self, table: Mapping[str, Any], place: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        place = f"{place}.{name}" if place else name
        for each, value in self._table(table.get(name, {}), place, f"{place}.NAME").items():
            yield each, self._table(value, f"{place}.{each}", f"{place}.{each}")

    def _table(self, value: Any, place: str, example: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            self._refuse(place, f"{_shown(value)} is not a table", f"write it as [{example}]")
        return value

    def _declared(
        self, kind: Kind, stream: str, name: str, table: Mapping[str, Any], place: str, more: tuple[str, ...] = ()
    ) -> Declared:
        known = settings_of_kind(kind)
        starts = kind != "stream"
        values = {each: default_of(kind, each, setting) for each, setting in known.items()}
        if not _NAME.fullmatch(name):
            self._refuse(place, f'"{name}" is not a name', 'a name has 1 to 63 letters, digits, "_" or "-"')
        for each, value in table.items():
            if value is None or (each == "start" and starts):
                continue
            if each not in known:
                self._unknown(place, each, (*known, *(("start",) if starts else ()), *more), "setting")
            values[each] = self._value(kind, each, known[each], value, f"{place}.{each}")
        start = table.get("start")
        if start not in (None, "earliest", "latest"):
            self._refuse(place, f"start = {_shown(start)} is not one of earliest, latest")
        values |= QUEUE_IS if kind == "queue" else {}
        return Declared(kind=kind, stream=stream, name=name, settings=values, start=start)

    def _value(self, kind: Kind, name: str, setting: Setting, value: Any, place: str) -> Value:
        parse = _PARSERS[setting.kind]
        try:
            found = parse(value)
        except (_NotValid, InvalidInput) as error:
            why = error.message if isinstance(error, InvalidInput) else f"{_shown(value)} is not {error}"
            self._refuse(place, why, error.hint if isinstance(error, InvalidInput) else None)
        if setting.kind == "choice":
            owner = StreamSettings if name in settings_of(StreamSettings) else ConsumerSettings
            choices = choices_of(owner, name)
            if found not in choices:
                self._refuse(place, f"{_shown(value)} is not one of {', '.join(choices)}")
        self._check_range(setting, found, value, place)
        return comparable(setting, found)

    def _check_range(self, setting: Setting, found: Any, value: Any, place: str) -> None:
        if setting.kind not in ("number", "bytes", "duration"):
            return
        for bound, is_outside, word in (
            (setting.least, setting.least is not None and found < setting.least, "less"),
            (setting.most, setting.most is not None and found > setting.most, "more"),
        ):
            if is_outside and bound is not None:
                self._refuse(place, f"{_shown(value)} is {word} than {written(setting, bound)}")

    def _unknown(self, place: str, name: str, known: tuple[str, ...], what: str) -> NoReturn:
        close = get_close_matches(name.replace("-", "_"), known, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"known are: {', '.join(sorted(known))}"
        self._refuse(place, f'there is no {what} "{name}"', hint)

    def _refuse(self, place: str, message: str, hint: str | None = None) -> NoReturn:
        where = f"{self.source}, [{place}]" if place else self.source
        raise InvalidInput(f"{where}: {message}", hint)


class _NotValid(Exception):
    """What a value should have been."""


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _NotValid("a whole number")
    return value


def _size(value: Any) -> int:
    return bytes_of(value) if isinstance(value, str) else _number(value)


def _duration(value: Any) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        return seconds_of(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _NotValid('a duration, such as "30s", "10m" or "7d"')
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _NotValid("true or false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _NotValid("a text")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise _NotValid("the name of a stream")
    return value


def _backoff(value: Any) -> Any:
    if value == "exponential":
        return _EXPONENTIAL
    if isinstance(value, Exponential):
        return value
    if isinstance(value, Mapping):
        return _of_parts(
            Exponential, value, {"first": _duration, "cap": _duration, "factor": _factor, "jitter": _factor}
        )
    if not isinstance(value, list | tuple):
        raise _NotValid('a list of delays, "exponential", or a table of first, factor, cap and jitter')
    return [_duration(each) for each in value]


def _factor(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _NotValid("a number")
    return float(value)


def _filter(value: Any) -> Any:
    if isinstance(value, str):
        return patterns.check(value)
    if isinstance(value, Filter):
        return value
    if not isinstance(value, Mapping):
        raise _NotValid("a key pattern, or a table of key, headers, headers_not and data")
    return _of_parts(Filter, value, {"key": _pattern, "data": _text, "headers": _texts, "headers_not": _texts})


def _pattern(value: Any) -> str:
    return patterns.check(_text(value))


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise _NotValid("a table of texts")
    return {name: _text(each) for name, each in value.items()}


def _of_parts(kind: Any, value: Mapping[str, Any], parts: Mapping[str, Callable[[Any], Any]]) -> Any:
    for name in value:
        if name not in parts:
            close = get_close_matches(name, parts, n=1)
            known = f'did you mean "{close[0]}"?' if close else f"known are: {', '.join(parts)}"
            raise InvalidInput(f'it has no part "{name}"', known)
    return kind(**{name: parts[name](each) for name, each in value.items()})


_PARSERS: Final[dict[str, Callable[[Any], Any]]] = {
    "number": _number,
    "bytes": _size,
    "duration": _duration,
    "flag": _flag,
    "choice": _text,
    "name": _name,
    "backoff": _backoff,
    "filter": _filter,
}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def written(setting: Setting, value: Value) -> Any:
    """A value as a file has it: durations and sizes as people write them, None as None."""
    if value is None:
        return None
    if setting.kind == "duration":
        return written_duration(value)
    if setting.kind == "bytes":
        return written_size(value)
    if setting.kind == "filter":
        parts = {each.name: getattr(value, each.name) for each in fields(Filter)}
        given = {name: dict(part) if isinstance(part, Mapping) else part for name, part in parts.items() if part}
        return given["key"] if list(given) == ["key"] else given or None
    if setting.kind == "backoff":
        if not isinstance(value, Exponential):
            return [written_duration(each) for each in value] or None
        cap = {} if value.cap is None else {"cap": written_duration(value.cap)}
        return {"first": written_duration(value.first), "factor": value.factor, **cap, "jitter": value.jitter}
    return value

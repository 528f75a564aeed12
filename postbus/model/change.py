"""The difference between what a file declares and what there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from postbus.model.consumer import ConsumerInfo, Exponential, Filter
from postbus.model.declaration import (
    QUEUE_IS,
    Declaration,
    Declared,
    Kind,
    Value,
    comparable,
    default_of,
    settings_of_kind,
    written,
)
from postbus.model.errors import Conflict
from postbus.model.settings import ConsumerChanges, Setting, StreamChanges, StreamSettings, settings_of
from postbus.model.stream import StreamInfo

Action = Literal["create", "change", "same", "unlisted", "remove"]
_OF_STREAMS: Final = settings_of(StreamSettings)
_ALTERABLE: Final = {*settings_of(StreamChanges), *settings_of(ConsumerChanges)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What `bus.apply` does, or would do, about one stream, queue, consumer or group.

    Attributes:
        action: create; change (some of its settings); same; unlisted (it is not in the file, and is left alone); remove.
        kind: stream, queue, consumer or group.
        stream: The stream that it is or reads.
        name: Its name.
        settings: Of each setting that changes, what it is and what it becomes; of a new one, what differs from the default.
    """

    action: Action
    kind: Kind
    stream: str
    name: str
    settings: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Its name, with that of its stream."""
        return self.name if self.kind in ("stream", "queue") else f"{self.stream}/{self.name}"


@dataclass(frozen=True, slots=True)
class Found:
    """What there is: all streams, and the consumers and groups of each."""

    streams: Mapping[str, StreamInfo]
    consumers: Mapping[str, dict[str, ConsumerInfo]]

    def has(self, each: Declared) -> bool:
        """Whether it exists."""
        if each.kind == "stream":
            return each.stream in self.streams
        return each.name in self.consumers.get(each.stream, {})

    def value(self, each: Declared, name: str) -> Value:
        """What a setting of it is now."""
        if name in _OF_STREAMS:
            return comparable(_OF_STREAMS[name], getattr(self.streams[each.stream], name))
        return consumer_value(self.consumers[each.stream][each.name], name)

    def is_queue(self, stream: str) -> bool:
        """Whether a stream and its only reader are a queue."""
        readers = self.consumers.get(stream, {})
        return self.streams[stream].until_acked and list(readers) == [stream] and not readers[stream].is_group


def consumer_value(info: ConsumerInfo, name: str) -> Value:
    """What a setting of a consumer is now, in the form in which values are compared."""
    if name == "filter":
        return Filter(
            key=info.filter_key_pattern,
            headers=dict(info.filter_headers or {}) or None,
            headers_not=dict(info.filter_headers_not or {}) or None,
            data=info.filter_data,
        )
    if name != "backoff":
        return getattr(info, name)
    if info.backoff_factor is None:
        return tuple(info.backoff)
    (first,) = info.backoff
    return Exponential(first=first, factor=info.backoff_factor, cap=info.backoff_cap, jitter=info.backoff_jitter)


def difference(declaration: Declaration, found: Found, *, prune: bool) -> list[Change]:
    """What has to be done, in an order in which it can be done.

    Raises:
        Conflict: Something that exists differs in a way that cannot be changed.
    """
    problems: list[Conflict] = []
    changes = []
    for each in declaration.declared:
        changes.append(_change(each, found))
        problems += _problems(each, changes[-1], found, declaration.source)
    if problems:
        others = "" if len(problems) == 1 else f"; and {len(problems) - 1} more like it"
        raise Conflict(problems[0].message + others, problems[0].hint)
    return [*changes, *_unlisted(declaration, found, prune=prune)]


def _change(each: Declared, found: Found) -> Change:
    has_stream = each.kind == "queue" and each.stream in found.streams
    exists = found.has(each)
    settings = {}
    for name, setting in (settings_of_kind(each.kind) | ({} if each.kind != "queue" else _queue_settings())).items():
        wanted = each.settings[name]
        known = exists or (has_stream and name in _OF_STREAMS)
        before = found.value(each, name) if known else default_of(each.kind, name, setting)
        if before != wanted and not (name in QUEUE_IS and not known):
            settings[name] = (written(setting, before), written(setting, wanted))
    action: Action = ("change" if settings else "same") if exists else "create"
    return Change(action=action, kind=each.kind, stream=each.stream, name=each.name, settings=settings)


def _queue_settings() -> dict[str, Setting]:
    return {name: _OF_STREAMS[name] for name in QUEUE_IS}


def _problems(each: Declared, change: Change, found: Found, source: str) -> Iterator[Conflict]:
    info = found.consumers.get(each.stream, {}).get(each.name)
    if each.kind != "stream" and info is not None and info.is_group != (each.kind == "group"):
        what = "group" if info.is_group else "consumer"
        yield Conflict(
            f'{source}: {each.kind} "{change.path}" cannot be made: a {what} of that name exists',
            f"give it another name, or remove that one: postbus {what} rm {each.stream} {each.name}",
        )
        return
    if change.action == "create" and not (each.kind == "queue" and each.stream in found.streams):
        return
    for name, (before, after) in change.settings.items():
        is_there = name in _OF_STREAMS or change.action == "change"
        if name not in _ALTERABLE and is_there:
            yield Conflict(
                f'{source}: {name} of {each.kind} "{change.path}" cannot be changed from {before} to {after}',
                f"give it another name, or remove it first: postbus {_command(each)}",
            )


def _command(each: Declared) -> str:
    reader = "" if each.kind in ("stream", "queue") else f" {each.name}"
    return f"{each.kind} rm {each.stream}{reader}"


def _unlisted(declaration: Declaration, found: Found, *, prune: bool) -> Iterator[Change]:
    """What is not in the file: readers of streams that are, and whole streams."""
    action: Action = "remove" if prune else "unlisted"
    streams = {each.stream for each in declaration.declared}
    listed = {(each.stream, each.name) for each in declaration.declared if each.kind != "stream"}
    for stream, readers in found.consumers.items():
        for name, info in readers.items():
            if stream in streams and (stream, name) not in listed:
                kind: Kind = "group" if info.is_group else "consumer"
                yield Change(action=action, kind=kind, stream=stream, name=name)
    for stream in found.streams:
        if stream not in streams:
            yield Change(
                action=action, kind="queue" if found.is_queue(stream) else "stream", stream=stream, name=stream
            )


def exported(found: Found) -> dict[str, Any]:
    """What there is, in the form of a file. Settings that are at their defaults are left out."""
    streams: dict[str, Any] = {}
    queues: dict[str, Any] = {}
    for stream in found.streams:
        if found.is_queue(stream):
            queues[stream] = _given("queue", stream, stream, found)
            continue
        table = _given("stream", stream, stream, found)
        for name, info in found.consumers.get(stream, {}).items():
            kind: Kind = "group" if info.is_group else "consumer"
            table.setdefault(f"{kind}s", {})[name] = _given(kind, stream, name, found)
        streams[stream] = table
    return {name: table for name, table in (("streams", streams), ("queues", queues)) if table}


def _given(kind: Kind, stream: str, name: str, found: Found) -> dict[str, Any]:
    this = Declared(kind=kind, stream=stream, name=name, settings={})
    defaults = {each: default_of(kind, each, setting) for each, setting in settings_of_kind(kind).items()}
    values = {each: found.value(this, each) for each in defaults}
    known = settings_of_kind(kind)
    return {each: written(known[each], value) for each, value in values.items() if value != defaults[each]}

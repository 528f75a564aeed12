"""What needs attention first, from figures that are there anyway."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.pipeline import PipelineInfo
from postbus.model.push import PushInfo
from postbus.model.wording import age, counted
from postbus.server.console.parts import Tone

# A message that is unread for so long is worth a line.
_PATIENCE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that needs attention.

    Attributes:
        rank: The lower, the more urgent.
        tone: How bad it is.
        text: What it is.
        path: The page with more about it.
    """

    rank: int
    tone: Tone
    text: str
    path: tuple[str, ...]


def troubles(
    streams: Iterable[StreamOverview],
    consumers: Iterable[ConsumerOverview],
    pipelines: Iterable[PipelineInfo],
    pushes: Iterable[PushInfo],
    now: datetime,
) -> list[Trouble]:
    """What needs attention, the worst first."""
    found = [*_of_streams(streams), *_of_consumers(consumers, now), *_of_pipelines(pipelines), *_of_pushes(pushes, now)]
    return sorted(found, key=lambda each: (each.rank, each.text))


def state_of(stream: StreamOverview, readers: Sequence[ConsumerOverview], now: datetime) -> tuple[str, Tone]:
    """How a stream is, in a word."""
    if stream.is_full:
        return "full", "bad"
    if any(each.dead for each in readers):
        return "dead letters", "bad"
    if any(is_behind(each, now) for each in readers):
        return "behind", "warn"
    return "ok", "good"


def is_behind(consumer: ConsumerOverview, now: datetime) -> bool:
    return consumer.oldest_unread_at is not None and now - consumer.oldest_unread_at > _PATIENCE


def _of_streams(streams: Iterable[StreamOverview]) -> Iterator[Trouble]:
    for each in streams:
        if each.is_full:
            yield Trouble(0, "bad", f"{each.name} is full and refuses new messages", ("streams", each.name))


def _of_consumers(consumers: Iterable[ConsumerOverview], now: datetime) -> Iterator[Trouble]:
    for each in consumers:
        path = ("streams", each.stream, "consumers", each.name)
        name = each.stream if each.stream == each.name else f"{each.stream} / {each.name}"
        if each.dead:
            more = "+" if each.dead >= 10_000 else ""
            text = f"{name} has {counted(each.dead, 'dead letter')}".replace(" dead", f"{more} dead", 1)
            yield Trouble(1, "bad", text, (*path, "dead"))
        if each.paused and each.backlog:
            yield Trouble(3, "warn", f"{name} is paused, with {counted(each.backlog, 'message')} in its backlog", path)
        elif is_behind(each, now):
            unread = age(each.oldest_unread_at, now)
            about = "" if each.backlog_is_exact else "about "
            text = f"{name} is behind: {about}{counted(each.backlog, 'message')}, the oldest unread for {unread}"
            yield Trouble(2, "warn", text, path)


def _of_pipelines(pipelines: Iterable[PipelineInfo]) -> Iterator[Trouble]:
    for each in pipelines:
        if each.state in ("failed", "lost"):
            reason = f": {each.last_error[:200]}" if each.last_error else ""
            yield Trouble(1, "bad", f"pipeline {each.name} has {_was(each.state)}{reason}", ("pipelines",))


def _of_pushes(pushes: Iterable[PushInfo], now: datetime) -> Iterator[Trouble]:
    for each in pushes:
        if each.state == "active":
            continue
        since = f", without a success for {age(each.first_failure_at, now)}" if each.first_failure_at else ""
        what = f"{each.stream} / {each.consumer} is not pushed: its endpoint is {each.state}{since}"
        reason = f": {each.reason[:200]}" if each.reason else ""
        path = ("streams", each.stream, "consumers", each.consumer, "push")
        yield Trouble(2, "bad" if each.state == "paused" else "warn", what + reason, path)


def _was(state: str) -> str:
    return "failed" if state == "failed" else "said nothing for a minute"

"""Recurring schedules in responses."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from postbus.model.schedule import ScheduleInfo
from postbus.server.responses.common import ms, utc
from postbus.server.responses.messages import Encoding, content


class ScheduleRun(msgspec.Struct):
    """`occurrence` is the time that it was for; null for one that somebody asked for."""

    occurrence: datetime | None
    published_at: datetime
    seq: int


class Schedule(msgspec.Struct):
    """`next_at` are the next five times, `last_runs` the last five messages."""

    stream: str
    name: str
    cron: str | None
    every_ms: int | None
    time_zone: str
    key: str | None
    data: Any
    headers: dict[str, str] | None
    ttl_ms: int | None
    catch_up: str
    max_catch_up: int
    paused: bool
    problem: str | None
    next_at: list[datetime]
    last_runs: list[ScheduleRun]
    created_at: datetime
    encoding: Encoding | None = None
    priority: int = 4


def schedule(found: ScheduleInfo) -> Schedule:
    data, _, encoding = content(found.data)
    return Schedule(
        stream=found.stream,
        name=found.name,
        cron=found.cron,
        every_ms=ms(found.every),
        time_zone=found.time_zone,
        key=found.key,
        data=data,
        headers=None if found.headers is None else dict(found.headers),
        ttl_ms=ms(found.ttl),
        catch_up=found.catch_up,
        max_catch_up=found.max_catch_up,
        paused=found.paused,
        problem=found.problem,
        next_at=[utc(each) for each in found.next_at],
        last_runs=[
            ScheduleRun(None if run.occurrence is None else utc(run.occurrence), utc(run.published_at), run.seq)
            for run in found.last_runs
        ],
        created_at=utc(found.created_at),
        encoding=encoding,
        priority=found.priority,
    )

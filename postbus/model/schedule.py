"""Recurring schedules as they are listed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from postbus.model.recurrence import CatchUp


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """A message that a schedule has published.

    Attributes:
        occurrence: The time of the schedule that it was for; None if somebody asked for it.
        published_at: When it was published.
        seq: Its seq.
    """

    occurrence: datetime | None
    published_at: datetime
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleInfo:
    """A recurring schedule.

    Attributes:
        stream: The stream that it publishes to.
        name: Its name.
        cron: Its cron expression; None with an interval.
        every: Its interval; None with an expression.
        time_zone: The zone of the expression.
        key: The key of its messages, or None.
        data: Their data.
        headers: Their headers, besides its own two; or None.
        ttl: Their time to live, or None.
        catch_up: What is published of times that were missed: the latest, all, or none (skip).
        max_catch_up: At most so many of them.
        paused: Whether it is paused.
        problem: Why it has no times; None if it has.
        next_at: Its next five times; none while it is paused.
        last_runs: Its last five messages, the newest first.
        created_at: When it was created, or got its interval.
        priority: The priority of its messages.
    """

    stream: str
    name: str
    cron: str | None
    every: timedelta | None
    time_zone: str
    key: str | None
    data: Any
    headers: Mapping[str, str] | None
    ttl: timedelta | None
    catch_up: CatchUp
    max_catch_up: int
    paused: bool
    problem: str | None
    next_at: tuple[datetime, ...]
    last_runs: tuple[ScheduleRun, ...]
    created_at: datetime
    priority: int = 4

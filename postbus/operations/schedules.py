"""Recurring schedules: create, alter, drop, pause, resume, run now, list; and their times, which are filled in ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from postbus.codec import answers, fields, parameters, rows
from postbus.db.arrays import TextArray
from postbus.db.parameters import encode_time
from postbus.model.duration import Duration, as_milliseconds, as_timedelta
from postbus.model.message import Message
from postbus.model.recurrence import CatchUp
from postbus.model.schedule import ScheduleInfo
from postbus.model.stream import DataType
from postbus.operations.call import Call, DataSql, Http, Route, Sql, first, nothing

CREATE: Final = Route("POST", "/api/streams/{stream}/schedules", "manage")
LIST: Final = Route("GET", "/api/streams/{stream}/schedules", "manage", also=("publish", "consume"))
LIST_ALL: Final = Route("GET", "/api/schedules", "manage", on_all_streams=True)
INFO: Final = Route("GET", "/api/streams/{stream}/schedules/{schedule}", "manage", also=("publish", "consume"))
ALTER: Final = Route("PATCH", "/api/streams/{stream}/schedules/{schedule}", "manage")
DROP: Final = Route("DELETE", "/api/streams/{stream}/schedules/{schedule}", "manage")
PAUSE: Final = Route("POST", "/api/streams/{stream}/schedules/{schedule}/pause", "manage")
RESUME: Final = Route("POST", "/api/streams/{stream}/schedules/{schedule}/resume", "manage")
RUN: Final = Route("POST", "/api/streams/{stream}/schedules/{schedule}/run", "manage")
# Stands for data that is not changed, and not sent.
_ANY_DATA: Final[dict[DataType, Any]] = {"json": None, "text": "", "bytes": b""}


def create(
    stream: str,
    name: str,
    message: Message,
    *,
    cron: str | None,
    every: Duration | None,
    time_zone: str,
    ttl: Duration | None,
    catch_up: CatchUp,
    max_catch_up: int,
    exist_ok: bool,
) -> Call[None]:
    def given(data_type: DataType) -> Sequence[Any]:
        _, key, data, headers, data_bytes, expected = parameters.publish_parameters(stream, data_type, message)
        times = (cron, as_timedelta(every), time_zone)
        policy = (as_timedelta(ttl), catch_up, max_catch_up)
        priority = parameters.priority_of(message)
        return (stream, name, *times, key, data, headers, data_bytes, *policy, expected, exist_ok, priority)

    return Call(
        DataSql(
            stream,
            "select postbus.create_schedule($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12, $13, $14, $15)",
            given,
            lambda _, found: None,
        ),
        Http(
            CREATE,
            (stream,),
            nothing,
            body={
                "name": name,
                "cron": cron,
                "every_ms": as_milliseconds(every),
                "time_zone": time_zone,
                "ttl_ms": as_milliseconds(ttl),
                "catch_up": catch_up,
                "max_catch_up": max_catch_up,
                "exist_ok": exist_ok or None,
                **fields.message(message),
            },
        ),
    )


def alter(
    stream: str,
    name: str,
    *,
    message: Message,
    has_data: bool,
    cron: str | None,
    every: Duration | None,
    time_zone: str | None,
    ttl: Duration | None,
    catch_up: CatchUp | None,
    max_catch_up: int | None,
    unset: Sequence[str],
    priority: int | None,
) -> Call[None]:
    """Change what is given; data only if there is some, since None is JSON's null."""

    def given(data_type: DataType) -> Sequence[Any]:
        sent = message if has_data else replace(message, data=_ANY_DATA[data_type])
        _, key, data, headers, data_bytes, expected = parameters.publish_parameters(stream, data_type, sent)
        times = (cron, as_timedelta(every), time_zone)
        contents = (data, headers, data_bytes) if has_data else (None, headers, None)
        policy = (as_timedelta(ttl), catch_up, max_catch_up)
        return (stream, name, *times, key, *contents, *policy, parameters.text_array(unset), expected, priority)

    shown = fields.message(message)
    if not has_data:
        shown.pop("data", None)
        shown.pop("encoding", None)
    return Call(
        DataSql(
            stream,
            "select postbus.alter_schedule($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12, $13, $14, $15)",
            given,
            lambda _, found: None,
        ),
        Http(
            ALTER,
            (stream, name),
            nothing,
            body={
                "cron": cron,
                "every_ms": as_milliseconds(every),
                "time_zone": time_zone,
                "ttl_ms": as_milliseconds(ttl),
                "catch_up": catch_up,
                "max_catch_up": max_catch_up,
                "priority": priority,
                **shown,
            },
            nulls=[{"ttl": "ttl_ms"}.get(each, each) for each in unset],
        ),
        repeatable=True,
    )


def drop(stream: str, name: str) -> Call[None]:
    return Call(
        Sql("select postbus.drop_schedule($1, $2)", (stream, name), nothing), Http(DROP, (stream, name), nothing)
    )


def pause(stream: str, name: str) -> Call[None]:
    return Call(
        Sql("select postbus.pause_schedule($1, $2)", (stream, name), nothing),
        Http(PAUSE, (stream, name), nothing),
        repeatable=True,
    )


def resume(stream: str, name: str) -> Call[None]:
    return Call(
        Sql("select postbus.resume_schedule($1, $2)", (stream, name), nothing),
        Http(RESUME, (stream, name), nothing),
        repeatable=True,
    )


def run_now(stream: str, name: str) -> Call[int]:
    return Call(
        Sql("select postbus.run_schedule($1, $2)", (stream, name), lambda found: abs(int(first(found)))),
        Http(RUN, (stream, name), lambda answer: int(answer.data["seq"])),
    )


def list_all(stream: str | None) -> Call[list[ScheduleInfo]]:
    return Call(
        Sql(
            "select s.* from postbus.list_schedules($1) as s",
            (stream,),
            lambda found: [rows.schedule(row) for row in found],
        ),
        Http(
            LIST_ALL if stream is None else LIST,
            () if stream is None else (stream,),
            lambda answer: [answers.schedule(each) for each in answer.data],
        ),
        repeatable=True,
    )


def info(stream: str, name: str) -> Call[ScheduleInfo | None]:
    """The schedule with that name; None if there is none."""
    return Call(
        Sql(
            "select s.* from postbus.list_schedules($1, $2) as s",
            (stream, name),
            lambda found: rows.schedule(found[0]) if found else None,
        ),
        Http(INFO, (stream, name), lambda answer: answers.schedule(answer.data)),
        repeatable=True,
    )


def to_fill() -> Call[list[rows.Unfilled]]:
    """The schedules whose times have to be worked out. Only those who reach Postgres ask."""
    return Call(
        Sql(
            "select f.* from postbus_data.schedules_to_fill() as f",
            (),
            lambda found: [rows.Unfilled(*row) for row in found],
        ),
        None,
        repeatable=True,
    )


def fill(unfilled: rows.Unfilled, until: datetime, occurrences: Sequence[datetime], problem: str | None) -> Call[bool]:
    times = TextArray([encode_time(each).encode() for each in occurrences])
    return Call(
        Sql(
            "select postbus_data.fill_schedule($1, $2, $3, $4, $5::text[]::timestamptz[], $6)",
            (unfilled.id, unfilled.version, unfilled.filled_until, until, times, problem),
            lambda found: bool(first(found)),
        ),
        None,
        repeatable=True,
    )

"""The form of a recurring schedule: its fields, and what they say, for a new one and for one that is changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, get_args

from postbus.codec import content
from postbus.html.markup import Html, tag
from postbus.model.amounts import seconds_of, written_duration
from postbus.model.message import Message
from postbus.model.partitioning import DEFAULT_PRIORITY
from postbus.model.recurrence import CatchUp, Recurrence
from postbus.model.schedule import ScheduleInfo
from postbus.model.stream import DataType
from postbus.operations import schedules as operations
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import choice, field, text_area
from postbus.server.console.pages.publish import data_of, headers_of
from postbus.server.console.visit import Visit, whole_number
from postbus.server.problems import Problem

_MOST_CAUGHT_UP: Final = 100
_PRIORITIES: Final = tuple(map(str, range(9, -1, -1)))


def schedule_fields(info: ScheduleInfo | None, data_type: DataType) -> Html:
    """A field for everything that a schedule has, but for its name."""
    headers = "" if info is None else "\n".join(f"{name}: {value}" for name, value in (info.headers or {}).items())
    every = "" if info is None or info.every is None else written_duration(info.every)
    ttl = "" if info is None or info.ttl is None else written_duration(info.ttl)
    more = tag(
        "div",
        choice("priority", "Priority", _PRIORITIES, str(DEFAULT_PRIORITY if info is None else info.priority)),
        text_area("headers", "Headers, one on a line", headers, rows=2, help="name: value"),
        field("ttl", "Time to live", ttl, placeholder="1h"),
        choice(
            "catch_up",
            "Of times that were missed, publish",
            get_args(CatchUp),
            "latest" if info is None else info.catch_up,
        ),
        field("max_catch_up", "at most", _MOST_CAUGHT_UP if info is None else info.max_catch_up, inputmode="numeric"),
        class_="grid",
    )
    return tag(
        "div",
        field("cron", "Cron expression", (info and info.cron) or "", placeholder="30 2 * * *", help="or an interval"),
        field("every", "Interval", every, placeholder="10m"),
        field("time_zone", "Time zone of the expression", "UTC" if info is None else info.time_zone),
        field("key", "Key", (info and info.key) or ""),
        text_area("data", "Data", text_of_data(info, data_type), rows=3),
        tag("details", tag("summary", "priority, headers, time to live, missed times"), more),
        class_="grid",
    )


def text_of_data(info: ScheduleInfo | None, data_type: DataType) -> str:
    """A schedule's data as its field has it."""
    if info is None:
        return "{}" if data_type == "json" else ""
    if data_type == "json":
        return content.encode_json(info.data).decode()
    return info.data.decode(errors="replace") if isinstance(info.data, bytes) else str(info.data)


def created(visit: Visit, name: str, data_type: DataType, to: str) -> Act:
    """The schedule that the form describes.

    Raises:
        InvalidInput: It would never fire, or its zone is not known.
        Problem: 400.
    """
    given = _given(visit.form, data_type)
    message = Message(
        key=given["key"],
        data=given["data"],
        headers=given["headers"],
        priority=given["priority"] if given["priority"] is not None else DEFAULT_PRIORITY,
    )
    times = {"cron": given["cron"], "every": given["every"], "time_zone": given["time_zone"] or "UTC"}
    _check(times["cron"], times["every"], times["time_zone"])
    policy = {
        "ttl": given["ttl"],
        "catch_up": given["catch_up"] or "latest",
        "max_catch_up": given["max_catch_up"] or _MOST_CAUGHT_UP,
    }
    call = operations.create(visit.stream, name, message, **times, **policy, exist_ok=False)
    defaults = {"priority": DEFAULT_PRIORITY, "catch_up": "latest", "max_catch_up": _MOST_CAUGHT_UP}
    shown = {each: value for each, value in given.items() if value != defaults.get(each)}
    if not times["cron"] or times["time_zone"] == "UTC":
        shown["time_zone"] = None
    python = f"bus.schedules.create({visit.stream!r}, {name!r}, {arguments(**shown)})"
    return Act(call, python, lambda _: f"schedule {name} was created", to, visit.stream, filler(visit))


def altered(visit: Visit, info: ScheduleInfo, data_type: DataType, to: str) -> Act:
    """What the form changes of a schedule.

    Raises:
        InvalidInput: It would never fire, or its zone is not known.
        Problem: 400.
    """
    given = _given(visit.form, data_type)
    has_data = visit.form.get("data", "").strip() != text_of_data(info, data_type).strip()
    changed = {
        each: value
        for each, value in given.items()
        if each != "data" and value is not None and value != _plain(getattr(info, each))
    }
    unset = [each for each in ("key", "headers", "ttl") if given[each] is None and getattr(info, each) is not None]
    if not changed and not unset and not has_data:
        raise Problem(400, "invalid", "nothing was changed", hint="change a field, then save")
    _check(given["cron"], given["every"], given["time_zone"] or info.time_zone)
    message = Message(
        key=changed.pop("key", None), data=given["data"] if has_data else None, headers=changed.pop("headers", None)
    )
    names = ("cron", "every", "time_zone", "ttl", "catch_up", "max_catch_up", "priority")
    call = operations.alter(
        visit.stream,
        info.name,
        message=message,
        has_data=has_data,
        unset=unset,
        **{name: changed.get(name) for name in names},
    )
    shown = {**changed, "key": message.key, "headers": message.headers, "unset": tuple(unset) or None}
    if has_data:
        shown["data"] = message.data
    python = f"bus.schedules.alter({visit.stream!r}, {info.name!r}, {arguments(**shown)})"
    return Act(call, python, lambda _: f"schedule {info.name} was changed", to, visit.stream, filler(visit))


def filler(visit: Visit) -> Callable[[], Awaitable[Any]]:
    """Works out the times of schedules, so that a page shows them at once."""
    return visit.bus.schedules.fill


def _given(form: Mapping[str, str], data_type: DataType) -> dict[str, Any]:
    """The fields as arguments; None where one is empty."""

    def text(name: str) -> str | None:
        return form.get(name, "").strip() or None

    def seconds(name: str) -> float | None:
        found = text(name)
        return None if found is None else seconds_of(found)

    def number(name: str, least: int) -> int | None:
        found = text(name)
        return None if found is None else whole_number(found, name, least=least)

    return {
        "cron": text("cron"),
        "every": seconds("every"),
        "time_zone": text("time_zone"),
        "key": text("key"),
        "data": data_of(form.get("data", ""), data_type),
        "headers": headers_of(form.get("headers", "")) or None,
        "ttl": seconds("ttl"),
        "catch_up": text("catch_up"),
        "max_catch_up": number("max_catch_up", 1),
        "priority": number("priority", 0),
    }


def _check(cron: str | None, every: float | None, time_zone: str) -> None:
    Recurrence(cron, None if every is None else timedelta(seconds=every), time_zone, datetime.now(UTC)).check()


def _plain(value: Any) -> Any:
    return value.total_seconds() if isinstance(value, timedelta) else value

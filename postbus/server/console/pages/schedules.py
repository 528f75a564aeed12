"""Recurring schedules, and messages that are scheduled once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from postbus.html.markup import Html, join, tag
from postbus.model.amounts import written_duration
from postbus.model.message import Scheduled
from postbus.model.schedule import ScheduleInfo, ScheduleRun
from postbus.model.stream import DataType
from postbus.operations import messages
from postbus.operations import schedules as operations
from postbus.operations.call import Call
from postbus.server.console.act import Act
from postbus.server.console.forms import button, field, form, hidden, row_form
from postbus.server.console.pages.schedule_form import altered, created, filler, schedule_fields, text_of_data
from postbus.server.console.parts import (
    Column,
    ago,
    badge,
    card,
    heading,
    link,
    moment,
    settings,
    table,
    until,
    value_of,
)
from postbus.server.console.stored import as_stored, in_list
from postbus.server.console.stream_tabs import tabs
from postbus.server.console.visit import Page, Visit, whole_number
from postbus.server.problems import Problem

_PAGE: Final = 50
_SHOWN_APART: Final = ("name", "cron", "every", "time_zone", "data", "problem", "next_at", "last_runs")


async def show_all(visit: Visit) -> Page:
    """The recurring schedules of all streams."""
    found = [each for each in await visit.bus.schedules.list_all() if visit.token.sees(each.stream)]
    empty = "There are no recurring schedules. Create one on the page of its stream, or with: postbus schedule add"
    body = card(
        table(_columns(visit, with_stream=True), found, id="schedule-table", empty=empty), id="schedules", live=True
    )
    return Page("Schedules", body, tab="schedules")


async def show_of_stream(visit: Visit) -> Page:
    """The recurring schedules of a stream, and its messages that wait for their time."""
    stream = visit.stream
    visit.demand("consume", stream)
    info = await visit.bus.stream_info(stream)
    found = await visit.bus.schedules.list_all(stream)
    once = await visit.run(as_stored(messages.list_scheduled(stream, key_pattern=None, after=None, max_messages=_PAGE)))
    may = visit.may("manage", stream)
    recurring = card(
        heading("Recurring"),
        table(
            _columns(visit, with_stream=False),
            found,
            id="schedule-table",
            empty="This stream has no recurring schedules.",
        ),
        id="schedules",
        live=True,
    )
    waiting = card(
        heading(
            "Waiting for their time", tag("span", f"the first {_PAGE}", class_="soft") if len(once) == _PAGE else None
        ),
        table(_once_columns(visit), once, id="once-table", empty="No message waits for its time."),
        id="once",
        live=True,
    )
    crumbs = (("Streams", visit.to("streams")), (stream, visit.to("streams", stream)))
    shown = join(tabs(visit, stream, "schedules"), recurring, waiting, _add(visit, info.data_type) if may else None)
    return Page("Schedules", shown, crumbs=crumbs, tab="streams")


async def show(visit: Visit) -> Page:
    """One recurring schedule: its message, its next times, its last runs, and a form that changes it."""
    stream = visit.stream
    visit.demand("consume", stream)
    info, data_type = await _one(visit)
    times = [tag("li", moment(each), " ", tag("span", until(each), class_="soft")) for each in info.next_at]
    runs = [
        tag("li", link(f"seq {each.seq:,}", visit.to("streams", stream, "messages", each.seq)), " ", _run(each))
        for each in info.last_runs
    ]
    shown = {each: getattr(info, each) for each in info.__dataclass_fields__ if each not in _SHOWN_APART}
    body = join(
        card(
            heading("Times", _buttons(visit, info)),
            tag("p", badge("problem", "bad"), " ", info.problem) if info.problem else None,
            tag("p", _when(info)),
            tag("ul", *times) if times else tag("p", "It has no times.", class_="soft"),
            id="times",
            live=True,
        ),
        card(
            heading("Last runs"),
            tag("ul", *runs) if runs else tag("p", "It has not published yet.", class_="soft calm"),
            id="runs",
            live=True,
        ),
        card(
            heading("Message"),
            settings((each, value_of(value)) for each, value in shown.items()),
            tag("pre", tag("code", text_of_data(info, data_type)), class_="data", data_copy=""),
        ),
        _edit(visit, info, data_type) if visit.may("manage", stream) else None,
    )
    crumbs = (
        ("Streams", visit.to("streams")),
        (stream, visit.to("streams", stream)),
        ("Schedules", visit.to("streams", stream, "schedules")),
    )
    return Page(info.name, body, crumbs=crumbs, tab="schedules")


async def change_one(visit: Visit) -> Act:
    """Save what the form changes of one schedule, or do what its buttons say."""
    if visit.form.get("act") != "alter":
        return await change(visit)
    info, data_type = await _one(visit)
    return altered(visit, info, data_type, visit.to("streams", visit.stream, "schedules", info.name))


async def _one(visit: Visit) -> tuple[ScheduleInfo, DataType]:
    stream, name = visit.stream, visit.request.parameters["schedule"]
    info = await visit.run(operations.info(stream, name))
    if info is None:
        raise Problem(404, "not_found", f"{stream} has no schedule {name}", hint="go on from the stream's schedules")
    return info, (await visit.bus.stream_info(stream)).data_type


def _run(run: ScheduleRun) -> Html:
    why = "asked for by hand" if run.occurrence is None else join("for ", moment(run.occurrence))
    return join(ago(run.published_at), " ago, ", why)


def _edit(visit: Visit, info: ScheduleInfo, data_type: DataType) -> Html:
    body = form(visit, schedule_fields(info, data_type), act="alter", submit=button("Save", primary=True))
    return tag("details", tag("summary", "Change it"), card(body), class_="more")


async def change(visit: Visit) -> Act:
    """Do what one of the page's forms asks for."""
    stream, wanted = visit.stream, visit.form.get("act", "")
    here = visit.to("streams", stream, "schedules")
    if wanted == "cancel":
        id_ = whole_number(visit.form.get("id"), "id", least=1)
        call = messages.cancel(stream, [id_])
        return Act(
            call,
            f"bus.cancel({stream!r}, [{id_}])",
            lambda done: "cancelled" if done else "it was published meanwhile",
            here,
            stream,
        )
    name = visit.form.get("name", "").strip()
    if wanted == "create":
        info = await visit.bus.stream_info(stream)
        return created(visit, name, info.data_type, here)
    calls: dict[str, Callable[[str, str], Call[Any]]] = {
        "pause": operations.pause,
        "resume": operations.resume,
        "run": operations.run_now,
        "drop": operations.drop,
    }
    if wanted not in calls:
        raise Problem(400, "invalid", "this form is not known", hint="reload the page")
    method = "run_now" if wanted == "run" else wanted
    words = {"pause": "is paused", "resume": "is active", "run": "was published now", "drop": "was removed"}[wanted]
    python = f"bus.schedules.{method}({stream!r}, {name!r})"
    then = filler(visit) if wanted == "resume" else None
    return Act(calls[wanted](stream, name), python, lambda _: f"schedule {name} {words}", here, stream, then)


def _columns(visit: Visit, *, with_stream: bool) -> list[Column[ScheduleInfo]]:
    def state(each: ScheduleInfo) -> Html:
        if each.problem:
            return join(badge("problem", "bad"), " ", each.problem)
        return badge("paused", "warn") if each.paused else badge("active", "good")

    found: list[Column[ScheduleInfo]] = [
        Column("schedule", lambda each: link(each.name, visit.to("streams", each.stream, "schedules", each.name))),
        Column("state", state),
        Column("when", _when),
        Column("next", lambda each: _times(each)),
        Column("last run", lambda each: _last(visit, each)),
        Column("key", lambda each: tag("code", each.key) if each.key is not None else "", is_extra=True),
    ]
    if with_stream:
        found.insert(0, Column("stream", lambda each: link(each.stream, visit.to("streams", each.stream))))
    else:
        found.append(Column("", lambda each: _buttons(visit, each)))
    return found


def _when(each: ScheduleInfo) -> object:
    if each.cron is None:
        return f"every {written_duration(each.every)}" if each.every is not None else ""
    return join(tag("code", each.cron), " ", tag("span", each.time_zone, class_="soft"))


def _times(each: ScheduleInfo) -> Html:
    if not each.next_at:
        return tag("span", "–", class_="soft")
    later = [tag("li", moment(time)) for time in each.next_at]
    return tag(
        "details", tag("summary", until(each.next_at[0])), tag("ul", *later), id=f"next-{each.stream}-{each.name}"
    )


def _last(visit: Visit, each: ScheduleInfo) -> Html:
    if not each.last_runs:
        return tag("span", "never", class_="soft")
    run = each.last_runs[0]
    return link(join(ago(run.published_at), " ago"), visit.to("streams", each.stream, "messages", run.seq))


def _buttons(visit: Visit, each: ScheduleInfo) -> Html:
    if not visit.may("manage", each.stream):
        return tag("span", "")
    acts = (("resume", "resume") if each.paused else ("pause", "pause"), ("run", "run now"), ("drop", "remove"))
    return row_form(visit, hidden("name", each.name), acts=acts)


def _once_columns(visit: Visit) -> Sequence[Column[Scheduled]]:
    def cancel(each: Scheduled) -> Html:
        if not visit.may("publish", visit.stream):
            return tag("span", "")
        return row_form(visit, hidden("id", each.id), acts=(("cancel", "cancel"),))

    return [
        Column("is published", lambda each: until(each.deliver_at)),
        Column("at", lambda each: moment(each.deliver_at), is_extra=True),
        Column("key", lambda each: tag("code", each.key) if each.key is not None else ""),
        Column("data", lambda each: in_list(each.data)),
        Column("", cancel),
    ]


def _add(visit: Visit, data_type: DataType) -> Html:
    fields = join(field("name", "Name", required=True), schedule_fields(None, data_type))
    body = form(visit, fields, act="create", submit=button("Create the schedule", primary=True))
    return tag("details", tag("summary", "New recurring schedule"), card(body), class_="more")

"""Recurring schedules, and messages that are scheduled once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from postbus.html.markup import Html, join, tag
from postbus.model.amounts import seconds_of, written_duration
from postbus.model.message import Message, Scheduled
from postbus.model.schedule import ScheduleInfo
from postbus.operations import messages
from postbus.operations import schedules as operations
from postbus.operations.call import Call
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import button, field, form, hidden, row_form, text_area
from postbus.server.console.pages.publish import data_of
from postbus.server.console.parts import Column, ago, badge, card, heading, link, moment, table, until
from postbus.server.console.stored import as_stored, in_list
from postbus.server.console.stream_tabs import tabs
from postbus.server.console.visit import Page, Visit, whole_number
from postbus.server.problems import Problem

_PAGE: Final = 50


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
    shown = join(tabs(visit, stream, "schedules"), recurring, waiting, _add(visit) if may else None)
    return Page("Schedules", shown, crumbs=crumbs, tab="streams")


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
        return await _create(visit, name, here)
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
    return Act(calls[wanted](stream, name), python, lambda _: f"schedule {name} {words}", here, stream)


async def _create(visit: Visit, name: str, here: str) -> Act:
    stream, given = visit.stream, visit.form
    info = await visit.bus.stream_info(stream)
    cron, every = given.get("cron", "").strip() or None, given.get("every", "").strip()
    seconds = seconds_of(every) if every else None
    zone = given.get("time_zone", "").strip() or "UTC"
    message = Message(key=given.get("key", "").strip() or None, data=data_of(given.get("data", ""), info.data_type))
    call = operations.create(
        stream,
        name,
        message,
        cron=cron,
        every=seconds,
        time_zone=zone,
        ttl=None,
        catch_up="latest",
        max_catch_up=100,
        exist_ok=False,
    )
    shown = arguments(cron=cron, every=seconds, time_zone=zone if cron else None, key=message.key, data=message.data)
    python = f"bus.schedules.create({stream!r}, {name!r}, {shown})"
    return Act(call, python, lambda _: f"schedule {name} was created", here, stream)


def _columns(visit: Visit, *, with_stream: bool) -> list[Column[ScheduleInfo]]:
    def state(each: ScheduleInfo) -> Html:
        if each.problem:
            return join(badge("problem", "bad"), " ", each.problem)
        return badge("paused", "warn") if each.paused else badge("active", "good")

    found: list[Column[ScheduleInfo]] = [
        Column("schedule", lambda each: link(each.name, visit.to("streams", each.stream, "schedules"))),
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


def _add(visit: Visit) -> Html:
    fields = (
        field("name", "Name", required=True),
        field("cron", "Cron expression", placeholder="30 2 * * *", help="or an interval"),
        field("every", "Interval", placeholder="10m"),
        field("time_zone", "Time zone of the expression", placeholder="UTC, or Europe/Berlin"),
        field("key", "Key"),
        text_area("data", "Data", "{}", rows=3),
    )
    body = form(
        visit, tag("div", *fields, class_="grid"), act="create", submit=button("Create the schedule", primary=True)
    )
    return tag("details", tag("summary", "New recurring schedule"), card(body), class_="more")

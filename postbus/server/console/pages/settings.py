"""Changing the settings of a stream or a consumer."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from postbus.html.markup import join, tag
from postbus.model.settings import ConsumerChanges, StreamChanges, settings_of
from postbus.operations import consumers, streams
from postbus.server.console import effects
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import button, form, hidden
from postbus.server.console.parts import Column, card, heading, link, settings, table, value_of
from postbus.server.console.setting_fields import parsed, setting_fields
from postbus.server.console.stream_tabs import tabs
from postbus.server.console.visit import Page, Visit
from postbus.server.problems import Problem

_SUBMIT: Final = join(button("Save", primary=True), button("Preview …", name="preview", value="1"))


async def show_stream(visit: Visit) -> Page:
    """The settings of a stream, in a form for those who may change them."""
    stream = visit.stream
    visit.demand_sight(stream)
    info = await visit.bus.stream_info(stream)
    current = {each.name: getattr(info, each.name) for each in fields(info)}
    crumbs = (("Streams", visit.to("streams")), (stream, visit.to("streams", stream)))
    if visit.may("manage", stream):
        body = form(visit, setting_fields(StreamChanges, current), act="alter", submit=_SUBMIT)
        fixed = tag(
            "p",
            f"Data: {info.data_type}; one message per key: {value_of(info.one_message_per_key)}. These cannot be changed.",
            class_="soft",
        )
        shown = card(fixed, body)
    else:
        shown = card(settings((name, value_of(value)) for name, value in current.items()))
    return Page("Settings", join(tabs(visit, stream, "settings"), shown), crumbs=crumbs, tab="streams")


async def alter_stream(visit: Visit) -> Act | Page:
    """Save the settings that the form changes, or show what that would do."""
    stream = visit.stream
    info = await visit.bus.stream_info(stream)
    current = {each.name: getattr(info, each.name) for each in fields(info)}
    given, unset = parsed(StreamChanges, visit.form, current)
    _check_any(given, unset)
    if "preview" in visit.form:
        visit.demand("manage", stream)
        shown = effects.rows(settings_of(StreamChanges), current, given, unset)
        return _preview(visit, stream, shown, await effects.of_stream(visit, info, given, unset))
    python = f"bus.alter_stream({stream!r}, {_changes(given, unset)})"
    call = streams.alter(stream, given, unset)
    return Act(call, python, lambda _: _said(given, unset), visit.to("streams", stream, "settings"), stream)


async def show_consumer(visit: Visit) -> Page:
    """The settings of a consumer, in a form."""
    stream, name = visit.stream, visit.consumer
    visit.demand("manage", stream)
    info = await visit.run(consumers.info(stream, name))
    current = {each.name: getattr(info, each.name) for each in fields(info)}
    body = form(visit, setting_fields(ConsumerChanges, current), act="alter", submit=_SUBMIT)
    crumbs = (
        ("Streams", visit.to("streams")),
        (stream, visit.to("streams", stream)),
        (name, visit.to("streams", stream, "consumers", name)),
    )
    note = tag("p", f"Order: {info.order}. It cannot be changed.", class_="soft")
    return Page("Settings", card(heading(f"Settings of {name}"), note, body), crumbs=crumbs, tab="consumers")


async def alter_consumer(visit: Visit) -> Act | Page:
    """Save the settings that the form changes, or show what that would do."""
    stream, name = visit.stream, visit.consumer
    info = await visit.run(consumers.info(stream, name))
    current = {each.name: getattr(info, each.name) for each in fields(info)}
    given, unset = parsed(ConsumerChanges, visit.form, current)
    _check_any(given, unset)
    if "preview" in visit.form:
        visit.demand("manage", stream)
        shown = effects.rows(settings_of(ConsumerChanges), current, given, unset)
        return _preview(visit, name, shown, effects.of_consumer(given, unset))
    python = f"bus.consumer({stream!r}, {name!r}).alter({_changes(given, unset)})"
    call = consumers.alter(stream, name, given, unset)
    return Act(call, python, lambda _: _said(given, unset), visit.to("streams", stream, "consumers", name), stream)


def _preview(visit: Visit, name: str, changes: list[tuple[str, Any, Any]], words: list[str]) -> Page:
    """What would change, and the form once more, as it was filled in, to save it."""
    columns: list[Column[tuple[str, Any, Any]]] = [
        Column("setting", lambda each: each[0].replace("_", " ")),
        Column("is", lambda each: value_of(each[1])),
        Column("becomes", lambda each: value_of(each[2])),
    ]
    fields_ = [hidden(field, text) for field, text in visit.form.items() if field not in ("act", "preview")]
    save = form(visit, *fields_, act="alter", submit=button("Save", primary=True))
    back = link("Back", visit.here(), class_="button")
    said = tag("ul", *(tag("li", each) for each in words)) if words else None
    body = card(
        heading(f"What would change in {name}"), table(columns, changes, id="changes"), said, save, tag("p", back)
    )
    return Page("Preview", body, tab="streams")


def _changes(given: dict[str, object], unset: list[str]) -> str:
    return arguments(unset=tuple(unset) or None, **given)


def _check_any(given: dict[str, object], unset: list[str]) -> None:
    if not given and not unset:
        raise Problem(400, "invalid", "nothing was changed", hint="change a field, then save")


def _said(given: dict[str, object], unset: list[str]) -> str:
    return f"changed: {', '.join([*given, *unset])}"

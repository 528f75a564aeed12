"""Streams: all of them, and one with its figures, consumers and the forms that change it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from postbus.html.markup import Html, join, tag
from postbus.html.sparkline import area_chart
from postbus.model.overview import ConsumerOverview
from postbus.model.stream import HorizonHolder, StreamInfo
from postbus.model.wording import about, count, rate, size
from postbus.operations import streams as operations
from postbus.server.console.act import Act
from postbus.server.console.figures import CHART_BUCKETS, CHART_SPAN
from postbus.server.console.forms import button, field, form, named_confirmation
from postbus.server.console.pages import overview
from postbus.server.console.paging import paged
from postbus.server.console.parts import (
    badge,
    card,
    code,
    duration,
    heading,
    link,
    table,
    tiles,
    until,
)
from postbus.server.console.stream_tabs import tabs
from postbus.server.console.tables import consumer_columns, stream_columns
from postbus.server.console.visit import Page, Visit
from postbus.server.problems import Problem

_PAGE: Final = 50
_CAPPED: Final = 10_000


async def show_all(visit: Visit) -> Page:
    """All streams, by name, those whose names contain what was searched for."""
    found = await overview.visible(visit)
    wanted = visit.query.get("q", "").lower()
    chosen = [each for each in found.streams if wanted in each.name.lower()]
    rows, pages = paged(visit, sorted(chosen, key=lambda each: each.name), _PAGE)
    search = tag(
        "form",
        field("q", "Name contains", visit.query.get("q", ""), kind="search"),
        tag("button", "Search"),
        class_="inline",
    )
    add = link("New stream", visit.to("new", "stream"), class_="button primary") if visit.may("manage", "new") else None
    body = card(
        heading("", search, add),
        table(stream_columns(visit, found), rows, id="streams", empty="No stream is called that."),
        pages,
        id="all",
        live=True,
    )
    return Page("Streams", body, tab="streams")


async def show(visit: Visit) -> Page:
    """One stream."""
    stream = visit.stream
    visit.demand_sight(stream)
    info = await visit.bus.stream_info(stream)
    readers = await visit.bus.consumer_overview(stream)
    counts = await visit.figures.chart(stream)
    holders = await visit.bus.horizon_holders(stream)
    archive = await visit.bus.archive_info(stream)
    facts = tiles(
        ("messages", about(info.message_estimate, is_exact=info.message_estimate <= 1000)),
        ("published /s", rate(visit.figures.rate(stream))),
        ("size", size(info.bytes)),
        ("scheduled", f"{count(info.scheduled)}{'+' if info.scheduled >= _CAPPED else ''}"),
        ("next is due", until(info.next_scheduled_at)) if info.next_scheduled_at else None,
        ("partitions", count(info.partitions)),
        ("last seq", f"{info.last_seq:,}"),
        ("archived up to", link(f"{archive.position_seq:,}", visit.to("streams", stream, "archive")))
        if archive is not None
        else None,
        ("state", badge("full", "bad")) if info.is_full else None,
        id="facts",
    )
    chart = [
        heading("Published in each minute of the last hour"),
        area_chart(counts, _minutes(), label="messages published in each minute", said=lambda value: f"{value:,.0f}"),
    ]
    return Page(
        stream,
        join(
            tabs(visit, stream, "overview"),
            card(facts, id="figures", live=True, class_="bare"),
            card(*chart, id="chart", live=True),
            _held(holders, info) if holders else None,
            card(_readers(visit, readers), id="readers", live=True),
            _forms(visit, info),
        ),
        crumbs=(("Streams", visit.to("streams")),),
        tab="streams",
    )


async def change(visit: Visit) -> Act:
    """Purge or remove the stream."""
    stream = visit.stream
    wanted = visit.form.get("act")
    if visit.form.get("name") != stream and "as_code" not in visit.form:
        raise Problem(400, "invalid", "nothing was changed: the name does not match", hint=f"type {stream} to confirm")
    if wanted == "purge":
        return Act(
            operations.purge(stream, before_seq=None, before_time=None, everything=True),
            f"bus.purge({stream!r}, everything=True)",
            lambda _: f"all messages of {stream} were removed",
            visit.to("streams", stream),
            stream,
        )
    if wanted == "drop":
        return Act(
            operations.drop(stream),
            f"bus.drop_stream({stream!r})",
            lambda _: f"stream {stream} was removed",
            visit.to("streams"),
            stream,
        )
    raise Problem(400, "invalid", "this form is not known", hint="reload the page")


def _minutes() -> list[str]:
    begun = datetime.now(UTC) - CHART_SPAN
    step = CHART_SPAN / CHART_BUCKETS
    return [f"{begun + step * place:%H:%M}" for place in range(CHART_BUCKETS)]


def _held(holders: list[HorizonHolder], info: StreamInfo) -> Html | None:
    """Who keeps readers from going on, if it is worth a line."""
    lines = [
        tag(
            "li",
            badge("held", "warn"),
            f" Readers stop at seq {each.held_at_seq:,} of {info.last_seq:,}: ",
            f"an open transaction of {each.user_name or 'somebody'} ",
            f"({each.application_name}) " if each.application_name else "",
            "has published and not ended, for ",
            duration(_seconds(each.held_for)),
            "" if each.pid is None else join(". End it with ", code(f"select pg_terminate_backend({each.pid})")),
        )
        for each in holders
        if each.held_for is None or each.held_for > timedelta(seconds=1)
    ]
    return card(heading("Open publishers"), tag("ul", *lines, class_="troubles"), id="holders") if lines else None


def _seconds(length: timedelta | None) -> timedelta | None:
    return None if length is None else timedelta(seconds=int(length.total_seconds()))


def _readers(visit: Visit, readers: list[ConsumerOverview]) -> Html:
    stream = visit.stream
    add = link("New consumer", visit.to("streams", stream, "new-consumer"), class_="button")
    empty = join("No consumer reads this stream. ", code(f"postbus consumer add {stream} NAME"))
    return join(
        heading("Consumers", add if visit.may("manage", stream) else None),
        table(consumer_columns(visit, with_stream=False), readers, id="consumer-table", empty=empty),
    )


def _forms(visit: Visit, info: StreamInfo) -> Html | None:
    if not visit.may("manage", info.name):
        return None
    messages = about(info.message_estimate, is_exact=info.message_estimate <= 1000)
    purge = form(
        visit,
        named_confirmation(info.name, f"Remove all {messages} messages. Consumers stay."),
        act="purge",
        submit=button("Purge", danger=True),
    )
    drop = form(
        visit,
        named_confirmation(info.name, "Remove the stream with its messages, consumers and dead letters."),
        act="drop",
        submit=button("Remove the stream", danger=True),
    )
    return tag("details", tag("summary", "Purge or remove"), card(purge), card(drop), class_="danger-zone")

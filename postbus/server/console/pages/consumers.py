"""Consumers and groups: all of them, and one with its figures, its messages and the forms that act on it."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

from postbus.html.markup import Html, join, tag
from postbus.html.sparkline import area_chart
from postbus.model.consumer import ConsumerInfo, ConsumerStats, PartitionStats, Peeked
from postbus.model.partitioning import DEFAULT_PRIORITY, LANE, priority_of
from postbus.model.push import PushInfo
from postbus.model.wording import about, count, rate
from postbus.operations import consumers as operations
from postbus.operations import deliveries, groups, push, tasks
from postbus.server.console import move, task_card
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import button, choice, field, form, hidden, named_confirmation, row_form
from postbus.server.console.pages import overview
from postbus.server.console.paging import paged
from postbus.server.console.parts import (
    Column,
    Tone,
    ago,
    badge,
    card,
    heading,
    link,
    now,
    number,
    settings,
    table,
    tiles,
    until,
    value_of,
)
from postbus.server.console.positions import position_of, range_of, time_of
from postbus.server.console.stored import as_stored, in_list
from postbus.server.console.tables import consumer_columns, state_badge
from postbus.server.console.visit import Page, Visit, whole_number
from postbus.server.problems import Problem

_PAGE: Final = 50
_PEEKED: Final = 25
# A chart of fewer is none.
_LEAST_POINTS: Final = 3
_STATES: Final = ("available", "delivered", "waiting", "dead")


async def show_all(visit: Visit) -> Page:
    """Consumers and groups of all streams, the largest backlog first."""
    found = await overview.visible(visit)
    wanted = visit.query.get("q", "").lower()
    chosen = [each for each in found.consumers if wanted in each.name.lower() or wanted in each.stream.lower()]
    order = sorted(chosen, key=lambda each: (-each.dead, -each.backlog, each.stream, each.name))
    rows, pages = paged(visit, order, _PAGE)
    search = tag(
        "form", field("q", "Name contains", visit.query.get("q", ""), kind="search"), button("Search"), class_="inline"
    )
    empty = (
        "No consumer is called that." if wanted else "There are no consumers yet. Create one on the page of its stream."
    )
    body = card(
        heading("", search),
        table(consumer_columns(visit), rows, id="consumer-table", empty=empty),
        pages,
        id="all",
        live=True,
    )
    return Page("Consumers", body, tab="consumers")


async def show(visit: Visit) -> Page:
    """One consumer or group."""
    stream, name = visit.stream, visit.consumer
    visit.demand_sight(stream)
    info = await visit.run(operations.info(stream, name))
    stats = await visit.run(operations.stats(stream, name))
    # For the chart: it has what pages have asked for in the last minutes.
    await visit.figures.latest()
    endpoint = None if info.is_group else await visit.run(push.info(stream, name))
    parts: list[Html | None] = [
        card(_tiles(visit, info, stats), _levels(stats), id="figures", live=True, class_="bare"),
        card(_chart(visit, stream, name), id="chart", live=True),
        _pushed(visit, endpoint) if endpoint is not None else None,
        await _actions(visit, info),
        await task_card.task_card(visit, stream, name),
        card(_partitions(stats), id="partitions", live=True),
    ]
    if not info.is_group and visit.token.may("consume", stream):
        parts.insert(5, card(await _peeked(visit), id="peeked", live=True))
    shown = settings(
        (each, value_of(getattr(info, each))) for each in info.__dataclass_fields__ if each not in ("stream", "name")
    )
    may_push = visit.may("manage", stream) and not info.is_group and endpoint is None
    to_push = link("Push its messages …", visit.to("streams", stream, "consumers", name, "push"), class_="button")
    edit = link("Edit", visit.to("streams", stream, "consumers", name, "settings"), class_="button")
    may_edit = visit.may("manage", stream) and not info.is_group
    parts.append(card(heading("Settings", to_push if may_push else None, edit if may_edit else None), shown))
    if visit.may("manage", stream):
        what = "Remove the consumer with its position, leases and dead letters. Messages stay in the stream."
        drop = form(
            visit, named_confirmation(name, what), act="drop", submit=button("Remove the consumer", danger=True)
        )
        parts.append(tag("details", tag("summary", "Remove"), card(drop), class_="danger-zone"))
    return Page(
        name,
        join(*parts),
        crumbs=(("Streams", visit.to("streams")), (stream, visit.to("streams", stream))),
        tab="consumers",
    )


def _pushed(visit: Visit, endpoint: PushInfo) -> Html:
    """That its messages are pushed, and where more is said of it."""
    host = urlsplit(endpoint.url).netloc
    tone: Tone = "good" if endpoint.state == "active" else "warn"
    to = visit.to("streams", endpoint.stream, "consumers", endpoint.consumer, "push")
    return card(
        tag("p", badge(endpoint.state, tone), " Its messages are pushed to ", link(host, to), class_="calm"),
        id="pushed",
        live=True,
    )


def _tiles(visit: Visit, info: ConsumerInfo, stats: ConsumerStats) -> Html:
    to_dead = visit.to("streams", info.stream, "consumers", info.name, "dead")
    return tiles(
        ("state", badge("paused", "warn") if info.paused else badge("active", "good")),
        ("backlog", about(stats.backlog, is_exact=stats.backlog_is_exact)),
        ("oldest unread", ago(stats.oldest_unread_at)),
        ("given out /s", rate(stats.rate_estimate)) if stats.rate_estimate is not None else None,
        ("in flight", count(stats.in_flight)),
        ("longest lease", ago(stats.oldest_in_flight_at)),
        ("waiting", count(stats.waiting)),
        ("dead letters", link(number(stats.dead, "bad"), to_dead)) if not info.is_group else None,
        ("missed", number(stats.missed_estimate, "warn")) if stats.missed_estimate else None,
        ("expired", count(stats.expired)) if stats.expired else None,
        id="facts",
    )


def _levels(stats: ConsumerStats) -> Html | None:
    """How many wait at each priority, where there are several."""
    levels = sorted(stats.by_priority.items(), reverse=True)
    shown = [(f"waiting, priority {level}", count(waiting)) for level, waiting in levels]
    return tiles(*shown, id="levels") if len(levels) > 1 else None


def _chart(visit: Visit, stream: str, name: str) -> Html:
    """The backlog in the last minutes in which somebody looked."""
    found = visit.figures.backlogs(stream, name)
    title = heading("Backlog in the last minutes")
    if len(found) < _LEAST_POINTS:
        return join(title, tag("p", "It is drawn while this page is open.", class_="soft calm"))
    moments = [f"{now() - timedelta(seconds=seconds):%H:%M:%S}" for seconds, _ in found]
    values = [float(backlog) for _, backlog in found]
    return join(title, area_chart(values, moments, label="messages in the backlog", said=lambda value: f"{value:,.0f}"))


def _name_of(partition: int) -> str:
    """Its number; for another priority than the default, that too."""
    level = priority_of(partition)
    return f"{partition % LANE}, priority {level}" if level != DEFAULT_PRIORITY else f"{partition}"


def _partitions(stats: ConsumerStats) -> Html:
    most = max((each.lag_estimate for each in stats.partitions), default=0) or 1
    rows: list[Column[PartitionStats]] = [
        Column("partition", lambda each: _name_of(each.partition)),
        Column("position", lambda each: f"{each.position_seq:,}", is_number=True),
        Column("lag, about", lambda each: number(each.lag_estimate), is_number=True),
        Column(
            "", lambda each: tag("meter", min=0, max=most, value=each.lag_estimate, aria_label="lag"), is_extra=True
        ),
        Column("oldest unread", lambda each: ago(each.oldest_unread_at), is_number=True),
        Column("in flight", lambda each: number(each.in_flight), is_number=True),
    ]
    horizon = tag("span", f"readable up to seq {stats.horizon_seq:,}", class_="soft")
    return join(
        heading("Partitions", horizon),
        table(rows, stats.partitions, id="partition-table", empty="It has read nothing yet."),
    )


async def _peeked(visit: Visit) -> Html:
    """Messages as it sees them. Looking at them leases nothing."""
    state = visit.query.get("state", "")
    state = state if state in _STATES else ""
    call = operations.peek(
        visit.stream,
        visit.consumer,
        state=state or None,  # type: ignore[arg-type]
        key_pattern=None,
        after_seq=whole_number(visit.query.get("after", "0"), "after"),
        max_messages=_PEEKED,
    )
    found = await visit.run(as_stored(call))
    links = [
        link(each or "all", visit.here(state=each or None, after=None), aria_current="true" if each == state else None)
        for each in ("", *_STATES)
    ]
    onward = None
    if len(found) == _PEEKED:
        onward = tag("nav", link("go on →", visit.here(after=found[-1].seq), rel="next"), class_="pages")
    choose = tag("nav", *links, class_="chips", aria_label="State")
    rows = table(
        _peek_columns(visit),
        found,
        id="peek-table",
        empty="It has nothing in that state." if state else "It has finished all messages.",
    )
    return join(heading("Its messages", choose), rows, onward)


def _peek_columns(visit: Visit) -> list[Column[Peeked]]:
    def when(each: Peeked) -> Html:
        if each.state == "delivered":
            return join("lease ends ", until(each.until))
        if each.state == "waiting":
            return join("again ", until(each.until)) if each.until else tag("span", "parked behind its key")
        return tag("span", "")

    found: list[Column[Peeked]] = [
        Column(
            "seq",
            lambda each: link(f"{each.seq:,}", visit.to("streams", visit.stream, "messages", each.seq)),
            is_number=True,
        ),
        Column("state", lambda each: state_badge(each.state)),
        Column("until", when),
        Column("attempts", lambda each: number(each.attempts), is_number=True),
        Column("key", lambda each: tag("code", each.key) if each.key is not None else ""),
        Column("data", lambda each: in_list(each.data), is_extra=True),
        Column("why", lambda each: (each.reason or "")[:120], is_extra=True),
    ]
    if visit.may("consume", visit.stream):
        found.append(Column("", lambda each: _settle(visit, each)))
    return found


def _settle(visit: Visit, each: Peeked) -> Html:
    """Buttons for a message that a worker has in flight."""
    if each.ack_id is None:
        return tag("span", "")
    acts = (
        ("ack", "ack", "the message is done"),
        ("nack", "nack", "deliver it again now"),
        ("extend", "+ 5 min", "extend the lease"),
    )
    return row_form(visit, hidden("ack_id", each.ack_id), acts=acts)


async def _actions(visit: Visit, info: ConsumerInfo) -> Html | None:
    if not visit.may("manage", info.stream):
        return None
    toggle = form(
        visit,
        act="resume" if info.paused else "pause",
        submit=button("Resume" if info.paused else "Pause", primary=info.paused),
        class_="row",
    )
    options = (("earliest", "earliest"), ("latest", "latest"), ("seq", "a seq"), ("time", "a time"))
    asked = visit.query
    seek = tag(
        "form",
        choice("to", "Move to", options, asked.get("to", "earliest")),
        field("at", "which seq or time", asked.get("at", ""), placeholder="1234, 10m or 2026-01-31 12:00"),
        button("Preview …"),
        action=visit.to("streams", info.stream, "consumers", info.name) + "#preview",
        class_="inline",
    )
    preview = await _preview(visit, info) if "to" in asked else None
    replay = None
    if not info.is_group:
        replay = form(
            visit,
            field("since", "Replay messages published since", "", placeholder="1h, or 2026-01-31 12:00"),
            field("until", "until", "", placeholder="now"),
            field("seqs", "or seqs", "", placeholder="100-200"),
            field("key", "with a key like", "", placeholder="orders.>"),
            field("rate", "at most, per second", "", placeholder="no limit", inputmode="numeric"),
            act="replay",
            submit=button("Replay"),
            class_="inline",
        )
    return card(heading("Actions", toggle), seek, preview, replay)


async def _preview(visit: Visit, info: ConsumerInfo) -> Html:
    """What moving the position would do, and the button that does it."""
    here = visit.to("streams", info.stream, "consumers", info.name)
    fields = (hidden("to", visit.query["to"]), hidden("at", visit.query.get("at", "")))
    confirm = form(visit, *fields, act="seek", submit=button("Move", primary=True), to=here, class_="row")
    effect = await move.effect_of(visit, info, *position_of(visit.query))
    return tag("div", tag("p", effect), confirm, class_="preview", id="preview")


async def change(visit: Visit) -> Act:
    """Do what one of the page's forms asks for."""
    stream, name = visit.stream, visit.consumer
    here = visit.to("streams", stream, "consumers", name)
    reader = f"bus.consumer({stream!r}, {name!r})"
    wanted, form_ = visit.form.get("act", ""), visit.form
    if wanted in ("pause", "resume"):
        call = operations.pause(stream, name) if wanted == "pause" else operations.resume(stream, name)
        return Act(
            call,
            f"{reader}.{wanted}()",
            lambda _: f"{name} is {'paused' if wanted == 'pause' else 'active'}",
            here,
            stream,
        )
    if wanted == "seek":
        start, seq, moment = position_of(form_)
        seek = operations.seek(stream, name, start=start, from_seq=seq, from_time=moment)
        given = repr(start) if start else arguments(from_seq=seq, from_time=moment)
        return Act(seek, f"{reader}.seek({given})", lambda _: f"{name} was moved", here, stream)
    if wanted == "replay":
        return _replay(visit, here)
    if wanted == "cancel-task":
        return task_card.cancel(visit, stream, here)
    if wanted in ("ack", "nack", "extend"):
        return _settled(visit, wanted, reader, here)
    if wanted == "drop":
        if form_.get("name") != name and "as_code" not in form_:
            raise Problem(
                400, "invalid", "nothing was changed: the name does not match", hint=f"type {name} to confirm"
            )
        info = await visit.run(operations.info(stream, name))
        drop = groups.drop(stream, name) if info.is_group else operations.drop(stream, name)
        return Act(
            drop, f"{reader}.drop()", lambda _: f"consumer {name} was removed", visit.to("streams", stream), stream
        )
    raise Problem(400, "invalid", "this form is not known", hint="reload the page")


def _replay(visit: Visit, here: str) -> Act:
    given = visit.form
    since, until_ = (time_of(given.get(name, ""), name) for name in ("since", "until"))
    first, last = range_of(given.get("seqs", ""))
    key = given.get("key", "").strip() or None
    rate = whole_number(given["rate"], "rate", least=1) if given.get("rate", "").strip() else None
    if since is None and first is None and key is None:
        hint = "give a time, seqs, or a key; to replay all, move to earliest"
        raise Problem(400, "invalid", "nothing says what to replay", hint=hint)
    chosen = {
        "from_seq": first,
        "to_seq": last,
        "from_time": since,
        "to_time": until_,
        "key_pattern": key,
        "rate": rate,
    }
    call = tasks.replay(visit.stream, visit.consumer, **chosen)  # type: ignore[arg-type]
    python = f"bus.tasks.replay({visit.stream!r}, {visit.consumer!r}, {arguments(**chosen)})"
    return Act(call, python, lambda task: f"task {task} has begun: replay", here, visit.stream)


def _settled(visit: Visit, wanted: str, reader: str, here: str) -> Act:
    stream, name, ack_id = visit.stream, visit.consumer, visit.form.get("ack_id", "")
    python = f"{reader}.{wanted}({ack_id!r})"
    if wanted == "ack":
        call = deliveries.ack(stream, name, [ack_id])
    elif wanted == "nack":
        call = deliveries.nack(stream, name, [ack_id], delay=0, reason="nacked in the console", untried=False)
        python = f"{reader}.nack({ack_id!r}, delay=0, reason='nacked in the console')"
    else:
        call = deliveries.extend(stream, name, [ack_id], ack_wait=300, shorten=False)
        python = f"{reader}.extend({ack_id!r}, 300)"
    word = {"ack": "acked", "nack": "nacked", "extend": "extended by 5 minutes"}[wanted]
    return Act(call, python, lambda found: word if found else "it did not count: the delivery has ended", here, stream)

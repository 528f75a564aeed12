"""The first page: whether anything is wrong, and where messages flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from postbus.doctor import postgres
from postbus.html.markup import Html, join, tag
from postbus.model.source import WELL
from postbus.model.wording import about, count, counted, rate
from postbus.server.console import attention
from postbus.server.console.figures import Figures, Services
from postbus.server.console.parts import Tone, ago, badge, card, code, heading, link, now, number, table, tiles
from postbus.server.console.tables import stream_columns
from postbus.server.console.visit import Page, Visit

_MOST_TROUBLES: Final = 8
_WORDS: Final[Mapping[Tone, str]] = {"bad": "problem", "warn": "warning"}
_MOST_STREAMS: Final = 15


async def show(visit: Visit) -> Page:
    """Figures of all streams that the token may see."""
    found = await visible(visit)
    if not found.streams:
        return Page("Overview", await _first_visit(visit), tab="overview")
    services = await _visible_services(visit)
    return Page(
        "Overview",
        join(
            card(_tiles(visit, found), _service_tiles(visit, found, services), id="figures", live=True, class_="bare"),
            card(_attention(visit, found, services), id="attention", live=True),
            card(_streams(visit, found), id="busiest", live=True),
        ),
        tab="overview",
    )


async def visible(visit: Visit) -> Figures:
    """The figures, without what the token may not see."""
    found = await visit.figures.latest()
    sees = visit.token.sees
    return Figures(
        [each for each in found.streams if sees(each.name)],
        [each for each in found.consumers if sees(each.stream)],
        [each for each in found.pipelines if sees(each.stream)],
    )


async def _visible_services(visit: Visit) -> Services:
    """Sources, endpoints and schedules, without what the token may not see."""
    found = await visit.figures.services()
    sees = visit.token.sees
    return Services(
        [each for each in found.sources if sees(each.stream)],
        [each for each in found.webhooks if sees(each.stream)],
        [each for each in found.pushes if sees(each.stream)],
        [each for each in found.schedules if sees(each.stream)],
    )


def _tiles(visit: Visit, found: Figures) -> Html:
    rates = [visit.figures.rate(each.name) for each in found.streams]
    known = [each for each in rates if each is not None]
    backlog = sum(each.backlog for each in found.consumers)
    is_exact = all(each.backlog_is_exact for each in found.consumers)
    dead = sum(each.dead for each in found.consumers)
    return tiles(
        ("published /s", rate(sum(known)) if known else "…"),
        ("streams", link(count(len(found.streams)), visit.to("streams"))),
        ("consumers", link(count(len(found.consumers)), visit.to("consumers"))),
        ("backlog", about(backlog, is_exact=is_exact)),
        ("oldest unread", ago(min(filter(None, (each.oldest_unread_at for each in found.consumers)), default=None))),
        ("in flight", count(sum(each.in_flight for each in found.consumers))),
        ("longest lease", ago(min(filter(None, (each.oldest_in_flight_at for each in found.consumers)), default=None))),
        ("dead letters", link(number(dead, "bad"), visit.to("dead"))),
        id="totals",
    )


def _service_tiles(visit: Visit, found: Figures, services: Services) -> Html | None:
    """What publishes and sends by itself, where there is some: how many, and how many of them are not well."""
    groups = [
        ("sources", "sources", [each.state in WELL for each in services.sources]),
        ("webhook sources", "sources", [not each.paused for each in services.webhooks]),
        ("endpoints", "push", [each.state == "active" for each in services.pushes]),
        ("schedules", "schedules", [not each.paused and not each.problem for each in services.schedules]),
        ("pipelines", "pipelines", [each.state not in ("failed", "lost") for each in found.pipelines]),
    ]
    shown = []
    for words, path, are_well in groups:
        if are_well:
            halted = len(are_well) - sum(are_well)
            note = join(" ", badge(f"{halted:,} halted", "warn")) if halted else None
            shown.append((words, link(join(count(len(are_well)), note), visit.to(path))))
    return tiles(*shown, id="services") if shown else None


def _attention(visit: Visit, found: Figures, services: Services) -> Html:
    troubles = attention.troubles(found.streams, found.consumers, found.pipelines, services.pushes, now())
    items = [
        tag("li", badge(_WORDS[each.tone], each.tone), " ", link(each.text, visit.to(*each.path)))
        for each in troubles[:_MOST_TROUBLES]
    ]
    more = len(troubles) - len(items)
    if more > 0:
        items.append(tag("li", f"and {more} more", class_="soft"))
    if visit.token.may("manage", None):
        said = [postgres.full(each.name) for each in found.streams if each.is_full]
        items += [
            tag(
                "li",
                badge(each.level, "bad" if each.level == "problem" else "warn"),
                " ",
                link(each.text, visit.to("doctor")),
            )
            for each in visit.figures.known_findings()
            if each.level in ("warning", "problem")
            # The lines above say that at this moment.
            and each not in said
        ]
    if not items:
        return join(heading("Needs attention"), tag("p", badge("ok", "good"), " Nothing right now.", class_="calm"))
    return join(heading("Needs attention"), tag("ul", *items, class_="troubles"))


def _streams(visit: Visit, found: Figures) -> Html:
    backlogs = {name: sum(each.backlog for each in readers) for name, readers in found.by_stream().items()}
    order = sorted(
        found.streams,
        key=lambda each: (-backlogs.get(each.name, 0), -(visit.figures.rate(each.name) or 0.0), each.name),
    )
    all_of_them = link(f"all {counted(len(order), 'stream')}", visit.to("streams"))
    rows = order[:_MOST_STREAMS]
    return join(heading("Streams", all_of_them), table(stream_columns(visit, found), rows, id="stream-table"))


async def _first_visit(visit: Visit) -> Html:
    """What to do on a bus without streams. The page goes on by itself when the first one is there."""
    host = visit.request.header(b"host") or "localhost:7376"
    url = f"{visit.state.settings.scheme}://{host}"
    curl = (
        f"curl {url}/api/streams -H 'Content-Type: application/json' -d '{{\"name\": \"orders\"}}'\n"
        f"curl {url}/api/streams/orders/messages -H 'Content-Type: application/json' \\\n"
        '  -d \'{"messages": [{"key": "orders.ada.1", "data": {"quantity": 4}}]}\''
    )
    python = (
        "import postbus\n\n"
        f'bus = postbus.connect("{url}")\n'
        'bus.create_stream("orders")\n'
        'bus.publish("orders", key="orders.ada.1", data={"quantity": 4})\n\n'
        'billing = bus.create_consumer("orders", "billing")\n'
        "batch = billing.receive(max_messages=10, wait=5)\n"
        "print([delivery.data for delivery in batch])\n"
        "billing.ack(batch)"
    )
    shell = (
        "postbus stream add orders\n"
        "postbus message send orders orders.ada.1 '{\"quantity\": 4}'\n"
        "postbus consumer add orders billing\n"
        "postbus receive orders billing --ack"
    )
    blocks = [
        tag("div", tag("h3", name), tag("pre", code(text), data_copy=""), class_="code-block")
        for name, text in (("Python", python), ("command line", shell), ("curl", curl))
    ]
    add = link("Create a stream", visit.to("new", "stream"), class_="button primary")
    return card(
        heading("There are no streams yet", add if visit.may("manage", "new") else None),
        tag("p", "Publish your first message from a terminal. This page shows it as soon as it is there."),
        *blocks,
        id="first",
        live=True,
    )

"""Columns of the tables that several pages have: streams and consumers."""

from __future__ import annotations

from postbus.html.markup import Html, tag
from postbus.html.sparkline import sparkline
from postbus.model.overview import ConsumerOverview, StreamOverview
from postbus.model.wording import about, rate
from postbus.server.console import attention
from postbus.server.console.figures import Figures
from postbus.server.console.parts import Column, ago, badge, link, now, number
from postbus.server.console.visit import Visit


def stream_columns(visit: Visit, found: Figures) -> list[Column[StreamOverview]]:
    """The columns of a table of streams."""
    readers = found.by_stream()

    def state(stream: StreamOverview) -> Html:
        word, tone = attention.state_of(stream, readers.get(stream.name, []), now())
        return badge(word, tone)

    def backlog(stream: StreamOverview) -> Html:
        of_stream = readers.get(stream.name, [])
        total = sum(each.backlog for each in of_stream)
        shown = about(total, is_exact=all(each.backlog_is_exact for each in of_stream))
        return tag("span", shown, class_=None if total else "soft")

    def dead(stream: StreamOverview) -> Html:
        return number(sum(each.dead for each in readers.get(stream.name, [])), "bad")

    return [
        Column("stream", lambda each: link(each.name, visit.to("streams", each.name))),
        Column("state", state),
        Column("kind", lambda each: "queue" if each.until_acked else "stream", is_extra=True),
        Column(
            "last minutes",
            lambda each: sparkline(visit.figures.rates(each.name), label="messages per second"),
            is_extra=True,
        ),
        Column("published /s", lambda each: rate(visit.figures.rate(each.name)), is_number=True),
        Column("backlog", backlog, is_number=True),
        Column("dead", dead, is_number=True),
        Column("consumers", lambda each: number(each.consumer_count), is_number=True, is_extra=True),
        Column(
            "last seq",
            lambda each: tag("span", f"{each.last_seq:,}", class_="soft" if not each.last_seq else None),
            is_number=True,
            is_extra=True,
        ),
    ]


def consumer_columns(visit: Visit, *, with_stream: bool = True) -> list[Column[ConsumerOverview]]:
    """The columns of a table of consumers."""

    def name(each: ConsumerOverview) -> Html:
        return link(each.name, visit.to("streams", each.stream, "consumers", each.name))

    def state(each: ConsumerOverview) -> Html:
        if each.paused:
            return badge("paused", "warn")
        return badge("behind", "warn") if attention.is_behind(each, now()) else badge("ok", "good")

    def dead(each: ConsumerOverview) -> Html:
        shown = number(each.dead, "bad")
        return link(shown, visit.to("streams", each.stream, "consumers", each.name, "dead")) if each.dead else shown

    found: list[Column[ConsumerOverview]] = [
        Column("consumer", name),
        Column("state", state),
        Column("backlog", lambda each: backlog_of(each), is_number=True),
        Column("oldest unread", lambda each: ago(each.oldest_unread_at), is_number=True),
        Column("in flight", lambda each: number(each.in_flight), is_number=True),
        Column("waiting", lambda each: number(each.waiting), is_number=True, is_extra=True),
        Column("dead", dead, is_number=True),
        Column("longest lease", lambda each: ago(each.oldest_in_flight_at), is_number=True, is_extra=True),
        Column("order", lambda each: "group" if each.is_group else each.order, is_extra=True),
    ]
    if with_stream:
        found.insert(0, Column("stream", lambda each: link(each.stream, visit.to("streams", each.stream))))
    return found


def backlog_of(each: ConsumerOverview) -> Html:
    """Its backlog; an estimate has a ~."""
    return tag("span", about(each.backlog, is_exact=each.backlog_is_exact), class_=None if each.backlog else "soft")


def state_badge(state: str) -> Html:
    """The state of a message for a consumer."""
    tones = {"delivered": "good", "waiting": "warn", "dead": "bad"}
    return badge(state, tones.get(state, ""))  # type: ignore[arg-type]

"""What is wrong with Postgres and Postbus, and what to do about it."""

from __future__ import annotations

from postbus.html.markup import join, tag
from postbus.server.console.parts import Tone, badge, card
from postbus.server.console.visit import Page, Visit

_TONES: dict[str, Tone] = {"ok": "good", "note": "soft", "warning": "warn", "problem": "bad"}
_ORDER = ("problem", "warning", "note", "ok")


async def show(visit: Visit) -> Page:
    """The findings, the worst first."""
    visit.demand_all("manage")
    found = sorted(await visit.figures.findings(), key=lambda each: _ORDER.index(each.level))
    items = [
        tag(
            "li",
            badge(each.level, _TONES[each.level]),
            " ",
            tag("strong", each.area),
            " ",
            each.text,
            tag("p", each.advice, class_="advice") if each.advice else None,
        )
        for each in found
    ]
    note = tag("p", "Checked at most half a minute ago; the same as ", tag("code", "postbus doctor"), class_="soft")
    return Page(
        "Doctor", card(join(tag("ul", *items, class_="findings"), note), id="findings", live=True), tab="doctor"
    )

"""Pipelines on Spark, and how they are getting on."""

from __future__ import annotations

from postbus.html.markup import Html, join, tag
from postbus.model.pipeline import PipelineInfo
from postbus.model.wording import count, rate
from postbus.server.console.pages import overview
from postbus.server.console.parts import Column, Tone, ago, badge, card, link, number, table
from postbus.server.console.visit import Page, Visit

_TONES: dict[str, Tone] = {"running": "good", "done": "good", "stopped": "", "failed": "bad", "lost": "bad"}


async def show_all(visit: Visit) -> Page:
    """All pipelines that have run, the latest first."""
    found = await overview.visible(visit)
    rows = sorted(found.pipelines, key=lambda each: each.noted_at, reverse=True)
    empty = join("No pipeline has run yet. ", tag("code", "postbus pipeline run archive orders --to /lake"))
    body = card(table(_columns(visit), rows, id="pipeline-table", empty=empty), id="pipelines", live=True)
    return Page("Pipelines", body, tab="pipelines")


def _columns(visit: Visit) -> list[Column[PipelineInfo]]:
    return [
        Column("pipeline", lambda each: each.name),
        Column("stream", lambda each: link(each.stream, visit.to("streams", each.stream))),
        Column("state", _state),
        Column("progress", _progress),
        Column("messages", lambda each: count(each.message_count), is_number=True),
        Column("aside", lambda each: number(each.aside_count, "warn"), is_number=True),
        Column("late", lambda each: number(each.late_count, "warn"), is_number=True, is_extra=True),
        Column("lag", lambda each: number(each.lag_estimate) if each.lag_estimate is not None else "–", is_number=True),
        Column("/s", lambda each: rate(each.rate), is_number=True, is_extra=True),
        Column("started", lambda each: ago(each.started_at), is_extra=True),
        Column("noted", lambda each: ago(each.noted_at), is_extra=True),
    ]


def _state(each: PipelineInfo) -> Html:
    shown = badge(each.state, _TONES[each.state])
    return (
        join(shown, tag("details", tag("summary", "why"), each.last_error, id=f"why-{each.name}"))
        if each.last_error
        else shown
    )


def _progress(each: PipelineInfo) -> Html:
    if not each.total_estimate:
        return tag("span", "–", class_="soft")
    share = min(100, round(100 * each.run_count / each.total_estimate))
    return join(tag("progress", max=100, value=share, aria_label="progress"), f" {share} %")

"""Pipelines on Spark, and how they are getting on."""

from __future__ import annotations

from collections.abc import Sequence

from postbus.html.markup import Html, join, tag
from postbus.model.pipeline import PipelineInfo
from postbus.model.wording import count, rate
from postbus.server.console.pages import overview
from postbus.server.console.parts import Column, Tone, ago, badge, card, code, heading, link, number, table
from postbus.server.console.visit import Page, Visit

_TONES: dict[str, Tone] = {"running": "good", "done": "good", "stopped": "", "failed": "bad", "lost": "bad"}


async def show_all(visit: Visit) -> Page:
    """All pipelines that have run, the latest first."""
    found = await overview.visible(visit)
    report = card(
        heading("Reports"),
        tag(
            "p", "Throughput, latency, redeliveries, hot keys, lag and growth of a stream, as one page to keep or send:"
        ),
        tag("pre", code("postbus pipeline run report orders --out report.html --open"), data_copy=""),
    )
    body = join(card(listed(visit, found.pipelines, "orders"), id="pipelines", live=True), report)
    return Page("Pipelines", body, tab="pipelines")


def listed(visit: Visit, found: Sequence[PipelineInfo], example: str) -> Html:
    """A table of pipelines, the latest first; without any, how to run one for such a stream."""
    rows = sorted(found, key=lambda each: each.noted_at, reverse=True)
    empty = join("No pipeline has run yet. ", code(f"postbus pipeline run archive {example} --to /lake"))
    return table(_columns(visit), rows, id="pipeline-table", empty=empty)


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
        Column("archive", lambda each: _archive(visit, each), is_extra=True),
    ]


def _archive(visit: Visit, each: PipelineInfo) -> Html:
    is_about_it = each.kind in ("archive", "compact", "replay")
    return link("archive", visit.to("streams", each.stream, "archive")) if is_about_it else tag("span", "")


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

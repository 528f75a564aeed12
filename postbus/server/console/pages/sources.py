"""Sources: tables whose changes become messages, and webhooks that are taken in."""

from __future__ import annotations

from typing import Any, Final

from postbus.html.markup import Html, join, tag
from postbus.model.source import WELL, SourceInfo
from postbus.model.webhook import WebhookSourceInfo
from postbus.model.wording import count, rate, size
from postbus.operations import sources as operations
from postbus.operations import webhook_sources
from postbus.server.console.act import Act
from postbus.server.console.forms import hidden, row_form
from postbus.server.console.pages import webhook_form
from postbus.server.console.parts import Column, Tone, ago, badge, card, code, duration, heading, link, table
from postbus.server.console.visit import Page, Visit
from postbus.server.problems import Problem

# What a change of a webhook source leaves as it is.
_UNCHANGED: Final[dict[str, Any]] = dict.fromkeys(
    ("stream", "secrets", "options", "key", "id_from", "keep_headers", "dedup", "max_body_bytes", "max_rate")
)


async def show_all(visit: Visit) -> Page:
    """All sources, and how they do."""
    visit.demand_all("manage")
    tables = await visit.bus.sources.list_all()
    webhooks = await visit.bus.webhook_sources.list_all()
    body = join(
        card(
            heading("Postgres tables"),
            table(_columns(visit), tables, id="postgres-sources", empty=_hint("postbus source postgres add")),
            id="tables",
            live=True,
        ),
        card(
            heading("Webhooks"),
            table(_webhook_columns(visit), webhooks, id="webhook-sources", empty=_hint("postbus source webhook add")),
            id="webhooks",
            live=True,
        ),
        webhook_form.new_source(visit) if visit.may("manage", None) else None,
    )
    return Page("Sources", body, tab="sources")


async def change(visit: Visit) -> Act:
    """Pause or resume a source, or create one for webhooks."""
    name, wanted = visit.form.get("name", ""), visit.form.get("act", "")
    here = visit.to("sources")
    if wanted == "create-webhook":
        return webhook_form.created(visit, here)
    if wanted not in ("pause", "resume"):
        raise Problem(400, "invalid", "this form is not known", hint="reload the page")
    said = f"source {name} {'is paused' if wanted == 'pause' else 'goes on'}"
    if visit.form.get("kind") == "webhook":
        call = webhook_sources.alter(name, **{**_UNCHANGED, "paused": wanted == "pause"})
        return Act(call, f"bus.webhook_sources.alter({name!r}, paused={wanted == 'pause'})", lambda _: said, here, None)
    source = operations.pause(name) if wanted == "pause" else operations.resume(name)
    return Act(source, f"bus.sources.{wanted}({name!r})", lambda _: said, here, None)


def _hint(command: str) -> Html:
    return join("There are none yet. ", code(command))


def _columns(visit: Visit) -> list[Column[SourceInfo]]:
    def state(each: SourceInfo) -> Html:
        tone: Tone = "good" if each.state in WELL else "warn" if each.state == "paused" else "bad"
        why = [tag("p", text, class_="advice") for text in (each.problem, each.remedy) if text]
        return join(badge(each.state.replace("_", " "), tone), *why)

    def tables(each: SourceInfo) -> Html:
        done = sum(one.backfill == "done" for one in each.found_tables)
        lines = [
            tag(
                "li",
                f"{one.schema}.{one.name}: ",
                one.backfill,
                f", {one.row_count:,} rows read" if one.row_count else "",
            )
            for one in each.found_tables
        ]
        words = (
            f"{len(each.found_tables)} found, {done} backfilled" if each.backfill else f"{len(each.found_tables)} found"
        )
        return tag("details", tag("summary", words), tag("ul", *lines), id=f"tables-{each.name}")

    return [
        Column("source", lambda each: tag("strong", each.name)),
        Column("state", state),
        Column("stream", lambda each: link(each.stream, visit.to("streams", each.stream))),
        Column("tables", tables),
        Column(
            "lag",
            lambda each: duration(None if each.lag_seconds is None else round(each.lag_seconds, 1)),
            is_number=True,
        ),
        Column("changes /s", lambda each: rate(each.changes_per_second), is_number=True),
        Column("changes", lambda each: count(each.change_count), is_number=True, is_extra=True),
        Column("log held", lambda each: size(each.wal_held_bytes), is_number=True, is_extra=True),
        Column("", lambda each: _button(visit, each.name, "postgres", is_paused=each.state == "paused")),
    ]


def _webhook_columns(visit: Visit) -> list[Column[WebhookSourceInfo]]:
    def refused(each: WebhookSourceInfo) -> Html:
        if not each.last_refusals:
            return tag("span", "none", class_="soft")
        latest = each.last_refusals[0]
        lines = [
            tag("li", ago(one.refused_at), f" ago: {one.status}, {one.reason} ({one.refused_count:,})")
            for one in each.last_refusals
        ]
        summary = tag("summary", badge(str(latest.status), "bad"), " ", ago(latest.refused_at), " ago")
        return tag("details", summary, tag("ul", *lines), id=f"refused-{each.name}")

    return [
        Column("source", lambda each: tag("strong", each.name)),
        Column("state", lambda each: badge("paused", "warn") if each.paused else badge("active", "good")),
        Column("kind", lambda each: each.kind),
        Column("stream", lambda each: link(each.stream, visit.to("streams", each.stream))),
        Column("path", lambda each: code(f"/api/webhook/{each.name}"), is_extra=True),
        Column("refused", refused),
        Column("", lambda each: _button(visit, each.name, "webhook", is_paused=each.paused)),
    ]


def _button(visit: Visit, name: str, kind: str, *, is_paused: bool) -> Html:
    if not visit.may("manage", None):
        return tag("span", "")
    act = "resume" if is_paused else "pause"
    return row_form(visit, hidden("name", name), hidden("kind", kind), acts=((act, act),))

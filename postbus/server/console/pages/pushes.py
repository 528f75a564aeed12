"""Endpoints that messages are pushed to, and the attempts to do so."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from postbus.html.markup import Html, join, tag
from postbus.model.push import PushAttempt, PushInfo
from postbus.operations import push as operations
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import button, field, form
from postbus.server.console.pages import push_form
from postbus.server.console.parts import (
    Column,
    Tone,
    ago,
    badge,
    card,
    code,
    duration,
    heading,
    link,
    settings,
    table,
    until,
    value_of,
)
from postbus.server.console.positions import time_of
from postbus.server.console.stored import text_of
from postbus.server.console.visit import Page, Visit, whole_number
from postbus.server.problems import Problem

_TONES: Final[dict[str, Tone]] = {"active": "good", "resting": "warn", "paused": "bad"}
_OUTCOMES: Final[dict[str, Tone]] = {"acked": "good", "failed": "warn", "dead": "bad", "returned": "", "test": ""}
_ATTEMPTS: Final = 50
_RESENT: Final = 10_000
_SHOWN_ANSWER: Final = 300


async def show_all(visit: Visit) -> Page:
    """All endpoints, and how they do."""
    visit.demand_all("manage")
    found = await visit.bus.list_pushes()
    empty = join("No consumer pushes its messages. ", code("postbus consumer push set STREAM CONSUMER https://…"))
    body = card(table(_columns(visit), found, id="push-table", empty=empty), id="pushes", live=True)
    return Page("Push", body, tab="push")


async def show(visit: Visit) -> Page:
    """The endpoint of a consumer, with its latest attempts."""
    stream, name = visit.stream, visit.consumer
    visit.demand("consume", stream)
    endpoint = await visit.run(operations.info(stream, name))
    if endpoint is None and visit.may("manage", stream):
        return Page("Push", push_form.without_endpoint(visit), crumbs=_crumbs(visit), tab="push")
    if endpoint is None:
        hint = f"give it one: postbus consumer push set {stream} {name} https://…"
        raise Problem(404, "not_found", f"consumer {name} of {stream} has no endpoint", hint=hint)
    seq = visit.query.get("seq", "").strip()
    attempts = await visit.run(
        operations.attempts(
            stream,
            name,
            seq=whole_number(seq, "seq", least=1) if seq else None,
            test_id=None,
            outcome=None,
            before_time=time_of(visit.query.get("before", ""), "before"),
            max_attempts=_ATTEMPTS,
        )
    )
    shown = {each: getattr(endpoint, each) for each in endpoint.__dataclass_fields__}
    shown["url"] = _place(endpoint)
    onward = None
    if len(attempts) == _ATTEMPTS:
        before = attempts[-1].attempted_at.isoformat()
        onward = tag("nav", link("older →", visit.here(before=before), rel="next"), class_="pages")
    search = tag("form", field("seq", "Of the message", seq, inputmode="numeric"), button("Show"), class_="inline find")
    body = join(
        card(heading("Endpoint", _state(endpoint)), settings((each, value_of(value)) for each, value in shown.items())),
        _actions(visit, endpoint) if visit.may("manage", stream) else None,
        card(
            heading("Attempts", search),
            table(_attempt_columns(visit), attempts, id="attempt-table", empty="Nothing has failed yet."),
            onward,
            id="attempts",
            live=True,
        ),
        push_form.changes(visit, endpoint) if visit.may("manage", stream) else None,
    )
    return Page("Push", body, crumbs=_crumbs(visit), tab="push")


async def change(visit: Visit) -> Act:
    """Pause, resume or test the endpoint, or send failed messages again."""
    stream, name, wanted = visit.stream, visit.consumer, visit.form.get("act", "")
    here = visit.to("streams", stream, "consumers", name, "push")
    of = f"bus.consumer({stream!r}, {name!r}).push"
    if wanted in ("set", "rotate", "drop"):
        if wanted == "drop":
            return push_form.removed(visit)
        return push_form.set_endpoint(visit, here) if wanted == "set" else push_form.rotated(visit, here)
    if wanted == "pause":
        reason = "paused in the console"
        return Act(
            operations.pause(stream, name, reason), f"{of}.pause({reason!r})", lambda _: "it is paused", here, stream
        )
    if wanted == "resume":
        return Act(operations.resume(stream, name), f"{of}.resume()", lambda _: "it goes on", here, stream)
    if wanted == "test":
        return Act(
            operations.test(stream, name), f"{of}.test()", lambda test: f"test {test} is on its way", here, stream
        )
    if wanted == "resend":
        seq = visit.form.get("seq", "").strip()
        number = whole_number(seq, "seq", least=1) if seq else None
        since = None if number else time_of(visit.form.get("since", ""), "since")
        if number is None and since is None:
            raise Problem(400, "invalid", "nothing says what to send again", hint="give a seq, or a time such as 1h")
        call = operations.resend(stream, name, seq=number, failed_since=since, max_messages=_RESENT)
        python = f"{of}.resend({arguments(seq=number, failed_since=since)})"
        return Act(call, python, lambda done: f"{done:,} sent again", here, stream)
    raise Problem(400, "invalid", "this form is not known", hint="reload the page")


def _crumbs(visit: Visit) -> tuple[tuple[str, str], ...]:
    stream, name = visit.stream, visit.consumer
    return (
        ("Streams", visit.to("streams")),
        (stream, visit.to("streams", stream)),
        (name, visit.to("streams", stream, "consumers", name)),
    )


def _place(endpoint: PushInfo) -> str:
    """Its URL without the query, which may hold a secret."""
    parts = urlsplit(endpoint.url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}" + ("?…" if parts.query else "")


def _state(endpoint: PushInfo) -> Html:
    rest = join(" until ", until(endpoint.rests_until)) if endpoint.state == "resting" else ""
    return join(badge(endpoint.state, _TONES[endpoint.state]), rest, f" {endpoint.reason}" if endpoint.reason else "")


def _columns(visit: Visit) -> list[Column[PushInfo]]:
    return [
        Column("consumer", lambda each: link(f"{each.stream} / {each.consumer}", _page(visit, each))),
        Column("state", _state),
        Column("endpoint", lambda each: code(_place(each))),
        Column("mode", lambda each: each.mode, is_extra=True),
        Column("last success", lambda each: ago(each.last_success_at), is_extra=True),
        Column("failing since", lambda each: ago(each.first_failure_at)),
        Column("last error", lambda each: (each.last_error or "")[:_SHOWN_ANSWER]),
    ]


def _page(visit: Visit, endpoint: PushInfo) -> str:
    return visit.to("streams", endpoint.stream, "consumers", endpoint.consumer, "push")


def _actions(visit: Visit, endpoint: PushInfo) -> Html:
    act = "resume" if endpoint.state == "paused" else "pause"
    toggle = form(visit, act=act, submit=button(act.capitalize(), primary=act == "resume"), class_="row")
    test = form(visit, act="test", submit=button("Send a test"), class_="row")
    resend = form(
        visit,
        field("since", "Send again what failed since", placeholder="1h"),
        field("seq", "or the message with this seq", inputmode="numeric"),
        act="resend",
        submit=button("Send again"),
        class_="inline",
    )
    return card(heading("Actions", toggle), test, resend)


def _attempt_columns(visit: Visit) -> list[Column[PushAttempt]]:
    def message(each: PushAttempt) -> object:
        if each.seq is None:
            return f"test {each.test_id}"
        return link(f"{each.seq:,}", visit.to("streams", visit.stream, "messages", each.seq))

    return [
        Column("message", message),
        Column("outcome", lambda each: badge(each.outcome, _OUTCOMES[each.outcome])),
        Column("status", lambda each: each.status or "–", is_number=True),
        Column("attempt", lambda each: each.attempt, is_number=True),
        Column("when", lambda each: join(ago(each.attempted_at), " ago")),
        Column("took", lambda each: duration(round(each.duration.total_seconds(), 3)), is_number=True),
        Column("error", lambda each: each.error or ""),
        Column("answer", lambda each: code(text_of(each.answer)[:_SHOWN_ANSWER]) if each.answer else "", is_extra=True),
    ]

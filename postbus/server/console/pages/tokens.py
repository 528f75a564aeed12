"""Tokens for the HTTP server: a new one is shown once."""

from __future__ import annotations

from datetime import timedelta

from postbus.html.markup import Html, join, tag
from postbus.model.amounts import seconds_of
from postbus.model.token import SCOPES, Token
from postbus.operations import tokens as operations
from postbus.server import logs
from postbus.server.console.act import Act
from postbus.server.console.forms import button, field, form, hidden, tick
from postbus.server.console.parts import Column, ago, badge, card, heading, link, now, table, until
from postbus.server.console.visit import Page, Visit, whole_number
from postbus.server.problems import Problem

_HELP = {
    "publish": "send messages",
    "consume": "receive, read and ack",
    "manage": "everything else",
}


async def show(visit: Visit) -> Page:
    """The tokens that there are, and a form for a new one."""
    visit.demand_all("manage")
    found = await visit.bus.tokens.list_all()
    is_open = visit.state.settings.is_open
    note = (
        tag("p", badge("open", "warn"), " This server asks for no tokens. Start it with --require-tokens to use them.")
        if is_open
        else None
    )
    listed = card(note, table(_columns(visit), found, id="token-table", empty="There are no tokens."), id="tokens")
    return Page("Tokens", join(listed, _new(visit) if visit.may("manage", None) else None), tab="tokens")


async def change(visit: Visit) -> Page | Act:
    """Create or revoke a token."""
    if visit.form.get("act") == "revoke":
        id_ = whole_number(visit.form.get("id"), "id", least=1)
        visit.state.guard.forget()
        return Act(
            operations.revoke(id_),
            f"bus.tokens.revoke({id_})",
            lambda _: "the token was revoked",
            visit.to("tokens"),
            None,
        )
    visit.demand("manage", None)
    scopes = [scope for scope in SCOPES if visit.form.get(scope) == "yes"]
    if not scopes:
        raise Problem(
            400, "invalid", "the token would allow nothing", hint="tick at least one: publish, consume, manage"
        )
    length = visit.form.get("expires", "").strip()
    call = operations.create(
        visit.form.get("name", "").strip(),
        scopes=scopes,
        streams=[each.strip() for each in visit.form.get("streams", "").split(",") if each.strip()] or ["*"],
        rate_limit=None,
        expires_at=now() + timedelta(seconds=seconds_of(length)) if length else None,
        aws=False,
    )
    created = await visit.run(call)
    logs.note("console", token=visit.token.name, did=f"created token {created.token.id}", request_id=visit.request.id)
    body = card(
        heading("The token is shown this once"),
        tag("pre", tag("code", created.text), data_copy=""),
        tag(
            "p",
            "Whoever has it may ",
            ", ".join(created.token.scopes),
            ". Send it as ",
            tag("code", "Authorization: Bearer …"),
        ),
        tag("p", link("Done", visit.to("tokens"), class_="button primary")),
    )
    return Page("Tokens", body, tab="tokens")


def _columns(visit: Visit) -> list[Column[Token]]:
    def revoke(each: Token) -> Html:
        if not visit.may("manage", None):
            return tag("span", "")
        revoke_ = tag("button", "revoke", name="act", value="revoke", class_="danger")
        return tag("form", hidden("id", each.id), revoke_, method="post", action=visit.here(), class_="row")

    return [
        Column("name", lambda each: each.name),
        Column("allows", lambda each: ", ".join(each.scopes)),
        Column("streams", lambda each: ", ".join(each.streams)),
        Column("created", lambda each: ago(each.created_at)),
        Column("expires", lambda each: until(each.expires_at, empty="never")),
        Column("", revoke),
    ]


def _new(visit: Visit) -> Html:
    body = form(
        visit,
        field("name", "Name", required=True, placeholder="billing service"),
        *(tick(scope, scope, help=_HELP[scope]) for scope in SCOPES),
        field("streams", "Streams", "*", help="names with commas between them; * stands for any characters"),
        field("expires", "Expires in", placeholder="never, or 90d"),
        act="create",
        submit=button("Create the token", primary=True),
        code=False,
    )
    return tag("details", tag("summary", "New token"), card(body), class_="more")

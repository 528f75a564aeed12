"""Tokens for the HTTP server: a new one is shown once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from postbus.codec import rows
from postbus.html.markup import Html, join, tag
from postbus.model.amounts import seconds_of
from postbus.model.token import SCOPES, NewToken, Token
from postbus.operations import tokens as operations
from postbus.operations.call import Call, Sql
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import button, field, form, hidden, row_form, tick
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


async def change(visit: Visit) -> Act:
    """Create or revoke a token."""
    if visit.form.get("act") == "revoke":
        id_ = whole_number(visit.form.get("id"), "id", least=1)
        if "as_code" not in visit.form:
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
    name = visit.form.get("name", "").strip()
    streams = [each.strip() for each in visit.form.get("streams", "").split(",") if each.strip()] or ["*"]
    expires_at = now() + timedelta(seconds=seconds_of(length)) if length else None
    call = operations.create(name, scopes=scopes, streams=streams, rate_limit=None, expires_at=expires_at, aws=False)
    given = arguments(scopes=scopes, streams=None if streams == ["*"] else streams, expires_at=expires_at)
    if "as_code" in visit.form:
        call = _readable(call)
    return Act(
        call, f"bus.tokens.create({name!r}, {given})", lambda _: "", visit.to("tokens"), None, page=_shown_once(visit)
    )


def _shown_once(visit: Visit) -> Callable[[NewToken], Page]:
    def page(created: NewToken) -> Page:
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

    return page


def _readable(call: Call[NewToken]) -> Call[NewToken]:
    """As SQL with a token of one's own: Postgres only gets its digest, and nobody would know that of another."""
    statement, (name, _, *others) = call.as_sql()
    digest = statement.replace("$2", "encode(sha256($2::bytea), 'hex')")
    return replace(
        call,
        sql=Sql(digest, (name, "pb_A_LONG_RANDOM_TEXT", *others), lambda found: NewToken("", rows.token(found[0]))),
    )


def _columns(visit: Visit) -> list[Column[Token]]:
    def revoke(each: Token) -> Html:
        if not visit.may("manage", None):
            return tag("span", "")
        return row_form(visit, hidden("id", each.id), acts=(("revoke", "revoke"),))

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
    )
    return tag("details", tag("summary", "New token"), card(body), class_="more")

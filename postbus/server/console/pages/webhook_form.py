"""The form of a new webhook source: who sends, and what its messages become."""

from __future__ import annotations

from typing import Any, Final

from postbus.html.markup import Html, tag
from postbus.model.webhook import SECRET_MADE_FOR, WEBHOOK_KINDS
from postbus.operations import webhook_sources as operations
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import button, choice, field, form, text_area
from postbus.server.console.parts import card, code, heading, link
from postbus.server.console.visit import Page, Visit
from postbus.server.problems import Problem
from postbus.webhooks.options import check_options
from postbus.webhooks.signatures import new_secret

_MOST_BYTES: Final = 1_048_576


def new_source(visit: Visit) -> Html:
    """The form."""
    made = ", ".join(SECRET_MADE_FOR)
    more = tag(
        "div",
        field(
            "key", "Keys are made from", placeholder="{source}.{type}.{id}", help="also {header:NAME}, {json:/POINTER}"
        ),
        field("max_rate", "Requests per second, each process", placeholder="no limit"),
        text_area(
            "options", "Options of the kind, one on a line", rows=2, help="such as header=X-Signature; see the guide"
        ),
        class_="grid",
    )
    fields = tag(
        "div",
        field("name", "Name", required=True, help="Senders post to /api/webhook/NAME."),
        field("stream", "Stream", required=True, help="With a dedup_window of three days or more."),
        choice("kind", "Who sends", WEBHOOK_KINDS, "standard"),
        field("secret", "Secret", kind="password", help=f"Empty makes one, for {made}."),
        class_="grid",
    )
    body = form(
        visit,
        fields,
        tag("details", tag("summary", "keys, rate, options"), more),
        act="create-webhook",
        submit=button("Create the source", primary=True),
    )
    return tag("details", tag("summary", "New webhook source"), card(body), class_="more")


def created(visit: Visit, here: str) -> Act:
    """The source that the form describes.

    Raises:
        InvalidInput: An option or a secret does not fit the kind.
        Problem: 400.
    """
    given = {name: text.strip() for name, text in visit.form.items()}
    name, stream, kind = given.get("name", ""), given.get("stream", ""), given.get("kind", "")
    secrets = [given["secret"]] if given.get("secret") else []
    options = _options(given.get("options", ""))
    check_options(kind, options, secrets)
    if secrets and "as_code" in visit.form:
        # What is shown may be copied to where a secret has no place.
        secrets = ["YOUR_SECRET"]
    key, max_rate = given.get("key") or None, _rate(given.get("max_rate", ""))
    call = operations.create(
        name,
        stream,
        kind=kind,  # type: ignore[arg-type]
        secrets=secrets,
        options=options,
        key=key,
        id_from=None,
        keep_headers=[],
        dedup=True,
        max_body_bytes=_MOST_BYTES,
        max_rate=max_rate,
        secret=new_secret() if not secrets and kind in SECRET_MADE_FOR else None,
    )
    shown = arguments(kind=kind, secrets=secrets or None, options=options or None, key=key, max_rate=max_rate)
    python = f"bus.webhook_sources.create({name!r}, {stream!r}, {shown})"

    def page(secret: str | None) -> Page | None:
        return None if secret is None else _secret_page(name, secret, here)

    return Act(call, python, lambda _: f"source {name} was created: /api/webhook/{name}", here, None, page=page)


def _secret_page(name: str, secret: str, to: str) -> Page:
    body = card(
        heading("The secret is shown this once"),
        tag("p", "Give it to the sender, with the address ", code(f"/api/webhook/{name}"), " of this server."),
        tag("pre", code(secret), data_copy=""),
        tag("p", link("Done", to, class_="button primary")),
    )
    return Page("Sources", body, tab="sources")


def _options(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, equals, value = line.partition("=")
        if not equals:
            raise Problem(
                400, "invalid", f'"{line[:80]}" is not an option', hint="write one on each line, as name=value"
            )
        found[name.strip()] = int(value) if name.strip() == "tolerance" and value.strip().isdecimal() else value.strip()
    return found


def _rate(text: str) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise Problem(
            400, "invalid", f'max_rate: "{text[:40]}" is not a number', hint="write digits, such as 50"
        ) from None

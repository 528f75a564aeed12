"""The form of an endpoint: where a consumer's messages are sent, and how."""

from __future__ import annotations

from typing import Final

from postbus.html.markup import Html, join, tag
from postbus.model.amounts import seconds_of, written_duration
from postbus.model.push import PUSH_MODES, PushInfo
from postbus.operations import push as operations
from postbus.server.console.act import Act, arguments
from postbus.server.console.forms import button, choice, field, form, named_confirmation, text_area, tick
from postbus.server.console.pages.publish import headers_of
from postbus.server.console.parts import card, code, heading, link
from postbus.server.console.visit import Page, Visit, whole_number
from postbus.server.problems import Problem
from postbus.webhooks.signatures import new_secret

_MOST_PER_REQUEST: Final = 100
_CONCURRENCY: Final = 10
_DAY: Final = 86_400


def endpoint_form(visit: Visit, endpoint: PushInfo | None, to: str) -> Html:
    """The form that sets an endpoint, or changes the one that there is."""
    is_new = endpoint is None
    schedule = "" if endpoint is None else ", ".join(map(written_duration, endpoint.retry_schedule))
    statuses = "" if endpoint is None else ", ".join(map(str, endpoint.permanent_statuses))
    more = tag(
        "div",
        choice("mode", "What a body holds", PUSH_MODES, "raw" if endpoint is None else endpoint.mode),
        field("batch_size", "In mode batch, messages at most", endpoint.batch_size if endpoint else _MOST_PER_REQUEST),
        field("concurrency", "Requests at once", endpoint.concurrency if endpoint else _CONCURRENCY),
        field("max_rate", "Requests per second", (endpoint and endpoint.max_rate) or "", placeholder="no limit"),
        field("timeout", "An answer may take", written_duration(endpoint.timeout) if endpoint else "20s"),
        field("retry_schedule", "Wait after each failure", schedule, placeholder="as the order suggests; 5s, 1m, 10m"),
        field("permanent_statuses", "Dead letter at once after", statuses, placeholder="400, 422"),
        text_area(
            "headers",
            "Headers, one on a line",
            "",
            rows=2,
            help="name: value" + ("" if is_new else "; empty: as they are"),
        ),
        tick("keep_successes", "keep attempts that succeeded", is_on=bool(endpoint and endpoint.keep_successes)),
        class_="grid",
    )
    return form(
        visit,
        field(
            "url",
            "Endpoint",
            kind="url",
            required=is_new,
            placeholder="https://example.com/hooks" if is_new else "as it is",
        ),
        tag("details", tag("summary", "how, how fast, and what failures do"), more),
        act="set",
        submit=button("Send its messages there" if is_new else "Save", primary=True),
        to=to,
    )


def without_endpoint(visit: Visit) -> Html:
    """What the page shows where nothing is pushed yet."""
    said = tag(
        "p",
        "Nobody is sent the messages of this consumer. With an endpoint, every server sends them, signed.",
        class_="calm",
    )
    return card(heading("No endpoint"), said, endpoint_form(visit, None, visit.here()))


def set_endpoint(visit: Visit, here: str) -> Act:
    """The endpoint that the form describes. Where the server may not send, it is refused.

    Raises:
        InvalidInput: The server does not send there, or a value is not allowed.
        Problem: 400.
    """
    given = {name: text.strip() for name, text in visit.form.items()}
    url = given.get("url") or None
    if url is not None:
        visit.state.push_guard.check_url(url)
    max_rate = given.get("max_rate", "")
    settings = {
        "headers": headers_of(given.get("headers", "")) or None,
        "mode": given.get("mode") or None,
        "batch_size": _number(given.get("batch_size", ""), "batch size"),
        "timeout": seconds_of(given["timeout"]) if given.get("timeout") else None,
        "concurrency": _number(given.get("concurrency", ""), "requests at once"),
        "max_rate": _rate(max_rate) if max_rate else 0.0,
        "retry_schedule": [
            seconds_of(each.strip()) for each in given.get("retry_schedule", "").split(",") if each.strip()
        ],
        "permanent_statuses": [
            whole_number(each, "status", least=300)
            for each in given.get("permanent_statuses", "").split(",")
            if each.strip()
        ],
        "keep_successes": given.get("keep_successes") == "yes",
    }
    call = operations.set_endpoint(visit.stream, visit.consumer, url=url, secret=new_secret(), **settings)  # type: ignore[arg-type]
    shown = {name: value for name, value in settings.items() if value not in ([], 0.0)}
    python = f"{_reader(visit)}.set({', '.join(filter(None, (url and repr(url), arguments(**shown))))})"

    def page(secret: str | None) -> Page | None:
        return None if secret is None else _secret_page("Requests are signed with this secret", secret, here)

    return Act(call, python, lambda _: "the endpoint was changed", here, visit.stream, page=page)


def rotated(visit: Visit, here: str) -> Act:
    """A new secret, beside which the old ones hold for a day."""
    call = operations.rotate_secret(visit.stream, visit.consumer, new_secret(), _DAY)
    python = f"{_reader(visit)}.rotate_secret(keep_old_for={_DAY})"
    words = "For a day, requests are also signed with the old secrets. The new one"
    return Act(call, python, lambda _: "", here, visit.stream, page=lambda secret: _secret_page(words, secret, here))


def removed(visit: Visit) -> Act:
    """No endpoint any more."""
    stream, name = visit.stream, visit.consumer
    if visit.form.get("name") != name and "as_code" not in visit.form:
        raise Problem(400, "invalid", "nothing was changed: the name does not match", hint=f"type {name} to confirm")
    to = visit.to("streams", stream, "consumers", name)
    words = f"{name} is not pushed any more"
    return Act(operations.drop(stream, name), f"{_reader(visit)}.remove()", lambda _: words, to, stream)


def changes(visit: Visit, endpoint: PushInfo) -> Html:
    """The forms that change an endpoint, replace its secret, and remove it."""
    here = visit.to("streams", endpoint.stream, "consumers", endpoint.consumer, "push")
    rotate = form(visit, act="rotate", submit=button("New secret"), class_="row", to=here)
    what = "Send nothing more, and forget the endpoint with its secrets. The consumer stays where it is."
    drop = form(
        visit,
        named_confirmation(endpoint.consumer, what),
        act="drop",
        submit=button("Remove the endpoint", danger=True),
        to=here,
    )
    return join(
        tag("details", tag("summary", "Change it"), card(endpoint_form(visit, endpoint, here), rotate), class_="more"),
        tag("details", tag("summary", "Remove"), card(drop), class_="danger-zone"),
    )


def _reader(visit: Visit) -> str:
    return f"bus.consumer({visit.stream!r}, {visit.consumer!r}).push"


def _secret_page(words: str, secret: str, to: str) -> Page:
    body = card(
        heading("The secret is shown this once"),
        tag("p", words + ":"),
        tag("pre", code(secret), data_copy=""),
        tag("p", link("Done", to, class_="button primary")),
    )
    return Page("Push", body, tab="push")


def _number(text: str, name: str) -> int | None:
    return whole_number(text, name, least=1) if text else None


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Problem(
            400, "invalid", f'max_rate: "{text[:40]}" is not a number', hint="write digits, such as 50 or 0.5"
        ) from None
